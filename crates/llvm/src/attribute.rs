//! Attributes of functions, parameters, results and calls.
//!
//! `function.attributes(Place::Parameter(0))` and `call.attributes(Place::Function)` look alike; a call shows only what stands at the call site, so whoever wants all asks
//! the called function, too.

use crate::context::{Context, Of, copy_text, text};
use crate::sys::{AttributeRef, call};
use crate::types::Type;
use crate::value::{Value, ValueKind};

/// Attributes that say what processor a function is for, and must be the same for functions to be inlined into each other.
const PROCESSOR: &[&str] = &[
    "target-cpu",
    "target-features",
    "tune-cpu",
    "probe-stack",
    "frame-pointer",
];

/// Attributes that ask for checks at run time, which must be the same for functions to be inlined into each other.
const SANITIZERS: &[&str] = &[
    "sanitize_address",
    "sanitize_hwaddress",
    "sanitize_memory",
    "sanitize_thread",
];

/// Where an attribute stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// On the function itself.
    Function,
    /// On its result.
    Result,
    /// On a parameter.
    Parameter(u32),
}

impl Place {
    fn number(self) -> u32 {
        match self {
            Place::Result => 0,
            Place::Function => u32::MAX,
            Place::Parameter(index) => index + 1,
        }
    }
}

/// An attribute.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attribute<'c> {
    pub(crate) raw: AttributeRef,
    pub(crate) context: Of<'c>,
}

/// What an attribute says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeData<'c> {
    /// LLVM's number of the attribute (see [`attribute_number`]) and its value: 0 for plain ones, bytes for `dereferenceable`, a mask for `memory`, `captures`, `allockind`.
    Enum(u32, u64),
    /// A number and a type, as of `sret`.
    Type(u32, Type<'c>),
    /// Key and value, as `"alloc-family"="__rust_alloc"`.
    Text(String, String),
    /// What the C interface cannot show: `range`, `initializes`.
    Other,
}

/// The number of a named attribute, for instance `noalias`. 0 if LLVM has none of that name.
pub fn attribute_number(name: &str) -> u32 {
    call!(LLVMGetEnumAttributeKindForName(text(name), name.len()))
}

impl Context {
    /// The attribute of this name and value; 0 for plain ones.
    pub fn attribute(&self, name: &str, value: u64) -> Attribute<'_> {
        let number = attribute_number(name);
        assert_ne!(number, 0, "LLVM has no attribute `{name}`");
        Attribute::new(call!(LLVMCreateEnumAttribute(self.raw, number, value)))
    }

    /// The attribute of this name with a type, for instance `sret`.
    pub fn type_attribute<'c>(&'c self, name: &str, of: Type<'c>) -> Attribute<'c> {
        let number = attribute_number(name);
        assert_ne!(number, 0, "LLVM has no attribute `{name}`");
        Attribute::new(call!(LLVMCreateTypeAttribute(self.raw, number, of.raw)))
    }

    /// `"key"="value"`.
    pub fn text_attribute(&self, key: &str, value: &str) -> Attribute<'_> {
        Attribute::new(call!(LLVMCreateStringAttribute(
            self.raw,
            text(key),
            key.len() as u32,
            text(value),
            value.len() as u32
        )))
    }
}

impl<'c> Attribute<'c> {
    pub(crate) fn new(raw: AttributeRef) -> Attribute<'c> {
        debug_assert!(!raw.is_null());
        Attribute {
            raw,
            context: Of::default(),
        }
    }

    fn maybe(raw: AttributeRef) -> Option<Attribute<'c>> {
        (!raw.is_null()).then(|| Attribute::new(raw))
    }

    /// What it says.
    pub fn data(self) -> AttributeData<'c> {
        if call!(LLVMIsStringAttribute(self.raw)) != 0 {
            let mut length = 0;
            let key = call!(LLVMGetStringAttributeKind(self.raw, &mut length));
            let key = copy_text(key, length as usize);
            let value = call!(LLVMGetStringAttributeValue(self.raw, &mut length));
            return AttributeData::Text(key, copy_text(value, length as usize));
        }
        if call!(LLVMIsTypeAttribute(self.raw)) != 0 {
            return AttributeData::Type(
                call!(LLVMGetEnumAttributeKind(self.raw)),
                Type::new(call!(LLVMGetTypeAttributeValue(self.raw))),
            );
        }
        if call!(LLVMIsEnumAttribute(self.raw)) != 0 {
            return AttributeData::Enum(
                call!(LLVMGetEnumAttributeKind(self.raw)),
                call!(LLVMGetEnumAttributeValue(self.raw)),
            );
        }
        AttributeData::Other
    }
}

impl<'c> Value<'c> {
    /// True for a call, false for a function; anything else has no attributes.
    #[track_caller]
    fn attributes_of_call(self) -> bool {
        if self.kind() == ValueKind::Function {
            return false;
        }
        assert!(self.is_call(), "{self} has no attributes");
        true
    }

    /// All attributes at a place of a function or a call.
    pub fn attributes(self, place: Place) -> Vec<Attribute<'c>> {
        let index = place.number();
        let of_call = self.attributes_of_call();
        let count = if of_call {
            call!(LLVMGetCallSiteAttributeCount(self.raw(), index))
        } else {
            call!(LLVMGetAttributeCountAtIndex(self.raw(), index))
        };
        let mut raw = vec![std::ptr::null_mut(); count as usize];
        if of_call {
            call!(LLVMGetCallSiteAttributes(
                self.raw(),
                index,
                raw.as_mut_ptr()
            ));
        } else {
            call!(LLVMGetAttributesAtIndex(
                self.raw(),
                index,
                raw.as_mut_ptr()
            ));
        }
        raw.into_iter().map(Attribute::new).collect()
    }

    /// The named attribute at a place of a function or a call.
    pub fn attribute(self, place: Place, name: &str) -> Option<Attribute<'c>> {
        let index = place.number();
        let number = attribute_number(name);
        if number == 0 {
            return None;
        }
        Attribute::maybe(if self.attributes_of_call() {
            call!(LLVMGetCallSiteEnumAttribute(self.raw(), index, number))
        } else {
            call!(LLVMGetEnumAttributeAtIndex(self.raw(), index, number))
        })
    }

    /// Whether a function or a call has the named attribute at a place.
    pub fn has_attribute(self, place: Place, name: &str) -> bool {
        self.attribute(place, name).is_some()
    }

    /// Whether a call has the named attribute at a place, itself or through the function that it calls.
    pub fn call_has_attribute(self, place: Place, name: &str) -> bool {
        self.has_attribute(place, name)
            || self
                .called_function()
                .is_some_and(|function| function.has_attribute(place, name))
    }

    /// The number that the named attribute of a function or a call carries.
    pub fn attribute_value(self, place: Place, name: &str) -> Option<u64> {
        match self.attribute(place, name)?.data() {
            AttributeData::Enum(_, value) => Some(value),
            _ => None,
        }
    }

    /// The value of `"key"="value"` of a function or a call.
    pub fn text_attribute(self, place: Place, key: &str) -> Option<String> {
        let index = place.number();
        let raw = if self.attributes_of_call() {
            call!(LLVMGetCallSiteStringAttribute(
                self.raw(),
                index,
                text(key),
                key.len() as u32
            ))
        } else {
            call!(LLVMGetStringAttributeAtIndex(
                self.raw(),
                index,
                text(key),
                key.len() as u32
            ))
        };
        match Attribute::maybe(raw)?.data() {
            AttributeData::Text(_, value) => Some(value),
            _ => None,
        }
    }

    /// Adds an attribute to a function or a call.
    pub fn add_attribute(self, place: Place, attribute: Attribute<'c>) -> Value<'c> {
        let index = place.number();
        if self.attributes_of_call() {
            call!(LLVMAddCallSiteAttribute(self.raw(), index, attribute.raw));
        } else {
            call!(LLVMAddAttributeAtIndex(self.raw(), index, attribute.raw));
        }
        self
    }

    /// Takes over what processor another function is for and what sanitizers look at it, so that one can be inlined into the other.
    pub fn adopt_processor(self, context: &'c Context, like: Value<'c>) {
        for key in PROCESSOR {
            if let Some(value) = like.text_attribute(Place::Function, key) {
                self.add_attribute(Place::Function, context.text_attribute(key, &value));
            }
        }
        for name in SANITIZERS {
            if like.has_attribute(Place::Function, name) {
                self.add_attribute(Place::Function, context.attribute(name, 0));
            }
        }
    }

    /// Removes a named attribute from a function or a call.
    pub fn remove_attribute(self, place: Place, name: &str) {
        let (index, number) = (place.number(), attribute_number(name));
        if number == 0 {
            return;
        }
        if self.attributes_of_call() {
            call!(LLVMRemoveCallSiteEnumAttribute(self.raw(), index, number));
        } else {
            call!(LLVMRemoveEnumAttributeAtIndex(self.raw(), index, number));
        }
    }

    /// Removes `"key"="…"` from a function or a call.
    pub fn remove_text_attribute(self, place: Place, key: &str) {
        let index = place.number();
        if self.attributes_of_call() {
            call!(LLVMRemoveCallSiteStringAttribute(
                self.raw(),
                index,
                text(key),
                key.len() as u32
            ));
        } else {
            call!(LLVMRemoveStringAttributeAtIndex(
                self.raw(),
                index,
                text(key),
                key.len() as u32
            ));
        }
    }
}
