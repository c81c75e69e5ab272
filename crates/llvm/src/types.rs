//! Types.

use std::fmt;

use crate::context::{Context, Of, copy_terminated, take_text, terminated};
use crate::sys::{TypeRef, call};
use crate::value::Value;

/// A type. Types are unique in their context: equal types are the same handle.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Type<'c> {
    pub(crate) raw: TypeRef,
    pub(crate) context: Of<'c>,
}

/// What a type is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "LLVM's own names")]
pub enum TypeKind {
    Void,
    Half,
    BFloat,
    Float,
    Double,
    /// x87, fp128 and PowerPC's double double.
    LongDouble,
    Integer(u32),
    Pointer,
    Function,
    Struct,
    Array,
    Vector,
    ScalableVector,
    Label,
    Metadata,
    Token,
    Other,
}

impl<'c> Type<'c> {
    pub(crate) fn new(raw: TypeRef) -> Type<'c> {
        debug_assert!(!raw.is_null());
        Type {
            raw,
            context: Of::default(),
        }
    }

    /// What it is.
    pub fn kind(self) -> TypeKind {
        match call!(LLVMGetTypeKind(self.raw)) {
            0 => TypeKind::Void,
            1 => TypeKind::Half,
            2 => TypeKind::Float,
            3 => TypeKind::Double,
            4..=6 => TypeKind::LongDouble,
            7 => TypeKind::Label,
            8 => TypeKind::Integer(call!(LLVMGetIntTypeWidth(self.raw))),
            9 => TypeKind::Function,
            10 => TypeKind::Struct,
            11 => TypeKind::Array,
            12 => TypeKind::Pointer,
            13 => TypeKind::Vector,
            14 => TypeKind::Metadata,
            16 => TypeKind::Token,
            17 => TypeKind::ScalableVector,
            18 => TypeKind::BFloat,
            _ => TypeKind::Other,
        }
    }

    /// Whether it is `void`.
    pub fn is_void(self) -> bool {
        self.kind() == TypeKind::Void
    }

    /// Whether it is a pointer.
    pub fn is_pointer(self) -> bool {
        self.kind() == TypeKind::Pointer
    }

    /// Whether it is half, bfloat, float or double.
    pub fn is_float(self) -> bool {
        matches!(
            self.kind(),
            TypeKind::Half | TypeKind::BFloat | TypeKind::Float | TypeKind::Double
        )
    }

    /// The width, if it is an integer.
    pub fn integer_width(self) -> Option<u32> {
        match self.kind() {
            TypeKind::Integer(width) => Some(width),
            _ => None,
        }
    }

    /// Whether values of it can be in memory.
    pub fn is_sized(self) -> bool {
        call!(LLVMTypeIsSized(self.raw)) != 0
    }

    /// The type of the elements of an array or a vector.
    pub fn element(self) -> Type<'c> {
        assert!(
            matches!(
                self.kind(),
                TypeKind::Array | TypeKind::Vector | TypeKind::ScalableVector
            ),
            "only arrays and vectors have elements, not {self}"
        );
        Type::new(call!(LLVMGetElementType(self.raw)))
    }

    /// The number of elements of an array, of a vector, or of fields of a struct.
    pub fn length(self) -> u64 {
        match self.kind() {
            TypeKind::Array => call!(LLVMGetArrayLength2(self.raw)),
            TypeKind::Vector => u64::from(call!(LLVMGetVectorSize(self.raw))),
            TypeKind::Struct => u64::from(call!(LLVMCountStructElementTypes(self.raw))),
            _ => panic!("only arrays, vectors and structs have a length, not {self}"),
        }
    }

    /// The fields of a struct; of an opaque one, none.
    pub fn fields(self) -> Vec<Type<'c>> {
        assert_eq!(
            self.kind(),
            TypeKind::Struct,
            "only structs have fields, not {self}"
        );
        let count = call!(LLVMCountStructElementTypes(self.raw)) as usize;
        let mut raw = vec![std::ptr::null_mut(); count];
        call!(LLVMGetStructElementTypes(self.raw, raw.as_mut_ptr()));
        raw.into_iter().map(Type::new).collect()
    }

    /// Whether a struct has no padding.
    pub fn is_packed(self) -> bool {
        self.kind() == TypeKind::Struct && call!(LLVMIsPackedStruct(self.raw)) != 0
    }

    /// The name of a named struct.
    pub fn struct_name(self) -> Option<String> {
        let name = if self.kind() == TypeKind::Struct {
            copy_terminated(call!(LLVMGetStructName(self.raw)))
        } else {
            String::new()
        };
        (!name.is_empty()).then_some(name)
    }

    /// The parameters of a function type.
    pub fn parameters(self) -> Vec<Type<'c>> {
        assert_eq!(
            self.kind(),
            TypeKind::Function,
            "only function types have parameters, not {self}"
        );
        let count = call!(LLVMCountParamTypes(self.raw)) as usize;
        let mut raw = vec![std::ptr::null_mut(); count];
        call!(LLVMGetParamTypes(self.raw, raw.as_mut_ptr()));
        raw.into_iter().map(Type::new).collect()
    }

    /// The result of a function type.
    pub fn result(self) -> Type<'c> {
        assert_eq!(
            self.kind(),
            TypeKind::Function,
            "only function types have a result, not {self}"
        );
        Type::new(call!(LLVMGetReturnType(self.raw)))
    }

    /// Whether a function type takes further arguments.
    pub fn is_variadic(self) -> bool {
        self.kind() == TypeKind::Function && call!(LLVMIsFunctionVarArg(self.raw)) != 0
    }

    /// The address space of a pointer.
    pub fn address_space(self) -> u32 {
        assert!(
            self.is_pointer(),
            "only pointers have an address space, not {self}"
        );
        call!(LLVMGetPointerAddressSpace(self.raw))
    }

    /// `[length x self]`.
    pub fn array(self, length: u64) -> Type<'c> {
        Type::new(call!(LLVMArrayType2(self.raw, length)))
    }

    /// `<lanes x self>`.
    pub fn vector(self, lanes: u32) -> Type<'c> {
        Type::new(call!(LLVMVectorType(self.raw, lanes)))
    }

    /// The function type `self (parameters)`.
    pub fn function(self, parameters: &[Type<'c>], variadic: bool) -> Type<'c> {
        let mut raw: Vec<TypeRef> = parameters.iter().map(|parameter| parameter.raw).collect();
        Type::new(call!(LLVMFunctionType(
            self.raw,
            raw.as_mut_ptr(),
            raw.len() as u32,
            variadic.into()
        )))
    }

    /// Zero, the null pointer, or an aggregate of them.
    pub fn zero(self) -> Value<'c> {
        Value::new(call!(LLVMConstNull(self.raw)))
    }

    /// `undef`.
    pub fn undef(self) -> Value<'c> {
        Value::new(call!(LLVMGetUndef(self.raw)))
    }

    /// `poison`.
    pub fn poison(self) -> Value<'c> {
        Value::new(call!(LLVMGetPoison(self.raw)))
    }
}

impl Context {
    /// `iN`.
    pub fn integer(&self, width: u32) -> Type<'_> {
        Type::new(call!(LLVMIntTypeInContext(self.raw, width)))
    }

    /// `half`.
    pub fn half(&self) -> Type<'_> {
        Type::new(call!(LLVMHalfTypeInContext(self.raw)))
    }

    /// `bfloat`.
    pub fn bfloat(&self) -> Type<'_> {
        Type::new(call!(LLVMBFloatTypeInContext(self.raw)))
    }

    /// `float`.
    pub fn float(&self) -> Type<'_> {
        Type::new(call!(LLVMFloatTypeInContext(self.raw)))
    }

    /// `double`.
    pub fn double(&self) -> Type<'_> {
        Type::new(call!(LLVMDoubleTypeInContext(self.raw)))
    }

    /// `void`.
    pub fn void(&self) -> Type<'_> {
        Type::new(call!(LLVMVoidTypeInContext(self.raw)))
    }

    /// `ptr`.
    pub fn pointer(&self) -> Type<'_> {
        Type::new(call!(LLVMPointerTypeInContext(self.raw, 0)))
    }

    /// `{ fields }`, or `<{ fields }>` if packed.
    pub fn structure<'c>(&'c self, fields: &[Type<'c>], packed: bool) -> Type<'c> {
        let mut raw: Vec<TypeRef> = fields.iter().map(|field| field.raw).collect();
        Type::new(call!(LLVMStructTypeInContext(
            self.raw,
            raw.as_mut_ptr(),
            raw.len() as u32,
            packed.into()
        )))
    }

    /// The named struct of this name, if there is one.
    pub fn named_structure(&self, name: &str) -> Option<Type<'_>> {
        let name = terminated(name);
        let raw = call!(LLVMGetTypeByName2(self.raw, name.as_ptr()));
        (!raw.is_null()).then(|| Type::new(raw))
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&take_text(call!(LLVMPrintTypeToString(self.raw))))
    }
}

impl fmt::Debug for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
