//! Metadata, and the debug locations that it holds.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::context::{Context, copy_text, take_text, text};
use crate::module::Module;
use crate::sys::{MetadataRef, ValueRef, call};
use crate::value::{Value, ValueKind};

/// A node, a string, or a constant wrapped as metadata.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Metadata<'c> {
    raw: MetadataRef,
    pub(crate) owner: &'c Context,
    /// What it wraps, which it goes with.
    constant: Option<Value<'c>>,
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourcePlace {
    /// The file as the compiler was given it.
    pub file: String,
    /// The directory that the file's name starts from.
    pub directory: String,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// The column, from 1; 0 if unknown.
    pub column: u32,
    /// The function whose source this is.
    pub function: String,
    /// The linkage name of that function; empty if there is none.
    pub linkage_name: String,
}

impl SourcePlace {
    /// The file with the directory that it starts from.
    pub fn path(&self) -> String {
        match self.directory.is_empty() || self.file.starts_with('/') {
            true => self.file.clone(),
            false => format!("{}/{}", self.directory, self.file),
        }
    }

    /// The line as it is told by its function, which stands in this file.
    fn in_function(&self, file: &str) -> LineOfFunction {
        LineOfFunction {
            function: self.function.clone(),
            file: file.to_owned(),
            line: self.line,
            column: self.column,
        }
    }
}

/// A line as it is told without blocks: by its function, which stands in some file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LineOfFunction {
    function: String,
    /// The file of the function, as the compiler was given it.
    file: String,
    line: u32,
    column: u32,
}

/// The file and its directory in which such lines really stand; none where functions of the same name disagree.
pub(crate) type ForeignLines = HashMap<LineOfFunction, Option<(String, String)>>;

impl<'c> Metadata<'c> {
    pub(crate) fn of(owner: &'c Context, raw: MetadataRef) -> Option<Metadata<'c>> {
        const CONSTANT: u32 = 1;
        if raw.is_null() {
            return None;
        }
        let found = Metadata::node_at(owner, raw);
        if call!(LLVMGetMetadataKind(raw)) != CONSTANT {
            return Some(found);
        }
        // The C interface unwraps constants only as operands of a node.
        let wrapper = Metadata::node(owner, &[Some(found)]);
        Some(Metadata {
            constant: wrapper.operand_values().pop().flatten(),
            ..found
        })
    }

    /// A node or a string, which belongs to the context.
    fn node_at(owner: &'c Context, raw: MetadataRef) -> Metadata<'c> {
        Metadata {
            raw,
            owner,
            constant: None,
        }
    }

    /// Its address, if what it wraps is still there.
    #[track_caller]
    pub(crate) fn raw(self) -> MetadataRef {
        self.constant.map(Value::raw);
        self.raw
    }

    pub(crate) fn of_value(owner: &'c Context, value: ValueRef) -> Option<Metadata<'c>> {
        if value.is_null() {
            return None;
        }
        Metadata::of(owner, call!(LLVMValueAsMetadata(value)))
    }

    /// As an operand, for intrinsics that take metadata.
    pub fn to_value(self) -> Value<'c> {
        Value::new(call!(LLVMMetadataAsValue(self.owner.raw, self.raw)))
    }

    /// The string, if it is one.
    pub fn as_text(self) -> Option<String> {
        let value = self.to_value();
        let mut length = 0;
        let start = call!(LLVMGetMDString(value.raw(), &mut length));
        (!start.is_null()).then(|| copy_text(start, length as usize))
    }

    /// The constant, if it wraps one.
    pub fn as_value(self) -> Option<Value<'c>> {
        self.constant
    }

    /// A node with these operands.
    pub fn node(owner: &'c Context, operands: &[Option<Metadata<'c>>]) -> Metadata<'c> {
        let mut raw: Vec<MetadataRef> = operands
            .iter()
            .map(|operand| operand.map_or(std::ptr::null_mut(), |metadata| metadata.raw))
            .collect();
        let node = call!(LLVMMDNodeInContext2(owner.raw, raw.as_mut_ptr(), raw.len()));
        Metadata::node_at(owner, node)
    }

    /// A string.
    pub fn text(owner: &'c Context, string: &str) -> Metadata<'c> {
        let raw = call!(LLVMMDStringInContext2(
            owner.raw,
            text(string),
            string.len()
        ));
        Metadata::node_at(owner, raw)
    }

    /// A constant as metadata.
    pub fn constant(owner: &'c Context, value: Value<'c>) -> Metadata<'c> {
        Metadata {
            raw: call!(LLVMValueAsMetadata(value.raw())),
            owner,
            constant: Some(value),
        }
    }

    /// A distinct node whose first operand is itself: the identity of a loop or an alias scope. The other operands follow.
    pub fn distinct_node(owner: &'c Context, operands: &[Option<Metadata<'c>>]) -> Metadata<'c> {
        // A uniqued node that holds itself is distinct from every other, because no other holds it.
        let temporary = call!(LLVMTemporaryMDNode(owner.raw, std::ptr::null_mut(), 0));
        let mut all = vec![Some(Metadata::node_at(owner, temporary))];
        all.extend_from_slice(operands);
        let node = Metadata::node(owner, &all);
        // This also frees the temporary node.
        call!(LLVMMetadataReplaceAllUsesWith(temporary, node.raw));
        node
    }

    /// The identity of a loop in which the accesses of a group do not depend on those of other iterations.
    pub fn parallel_loop(group: Metadata<'c>) -> Metadata<'c> {
        let owner = group.owner;
        let accesses = Metadata::text(owner, "llvm.loop.parallel_accesses");
        let property = Metadata::node(owner, &[Some(accesses), Some(group)]);
        Metadata::distinct_node(owner, &[Some(property)])
    }

    /// What is said of a loop that must not be unrolled, at the branch that ends its body.
    pub fn rolled_loop(owner: &'c Context) -> Metadata<'c> {
        let disable = Metadata::text(owner, "llvm.loop.unroll.disable");
        let property = Metadata::node(owner, &[Some(disable)]);
        Metadata::distinct_node(owner, &[Some(property)])
    }

    /// Whether it is a node with operands.
    pub fn is_node(self) -> bool {
        !call!(LLVMIsAMDNode(self.to_value().raw())).is_null()
    }

    /// The operands of a node as values: constants come as themselves, other metadata wrapped, absent ones as `None`.
    pub fn operand_values(self) -> Vec<Option<Value<'c>>> {
        if !self.is_node() {
            return Vec::new();
        }
        let value = self.to_value();
        let count = call!(LLVMGetMDNodeNumOperands(value.raw())) as usize;
        let mut raw = vec![std::ptr::null_mut(); count];
        call!(LLVMGetMDNodeOperands(value.raw(), raw.as_mut_ptr()));
        raw.into_iter().map(Value::maybe).collect()
    }

    /// The operands of a node.
    pub fn operands(self) -> Vec<Option<Metadata<'c>>> {
        self.operand_values()
            .into_iter()
            .map(|operand| Metadata::of_value(self.owner, operand?.raw()))
            .collect()
    }

    /// Line and column, and whatever the scope says, of a debug location.
    fn place(self) -> SourcePlace {
        let scope = call!(LLVMDILocationGetScope(self.raw));
        let mut place = SourcePlace {
            file: String::new(),
            directory: String::new(),
            line: call!(LLVMDILocationGetLine(self.raw)),
            column: call!(LLVMDILocationGetColumn(self.raw)),
            function: String::new(),
            linkage_name: String::new(),
        };
        let Some(scope) = Metadata::of(self.owner, scope) else {
            return place;
        };
        (place.file, place.directory) = scope.file();
        if let Some(subprogram) = scope.enclosing_subprogram() {
            let operands = subprogram.operands();
            // The operands of a subprogram are file, scope, name, linkage name, …
            let string = |index: usize| {
                operands
                    .get(index)
                    .copied()
                    .flatten()
                    .and_then(Metadata::as_text)
                    .unwrap_or_default()
            };
            place.function = string(2);
            place.linkage_name = string(3);
        }
        let lines = self.owner.foreign_lines.borrow();
        if !lines.is_empty() {
            match lines.get(&place.in_function(&place.file)) {
                Some(Some((file, directory))) => {
                    place.file.clone_from(file);
                    place.directory.clone_from(directory);
                }
                Some(None) => place.line = 0,
                None => {}
            }
        }
        place
    }

    /// The file of a scope and the directory that its name starts from.
    fn file(self) -> (String, String) {
        name_of_file(call!(LLVMDIScopeGetFile(self.raw)))
    }

    /// Remembers the file of a debug location if it is not that of the function.
    fn keep_foreign_line(self) {
        let scope = call!(LLVMDILocationGetScope(self.raw));
        let Some(scope) = Metadata::of(self.owner, scope) else {
            return;
        };
        let Some(function) = scope.enclosing_subprogram() else {
            return;
        };
        let file = call!(LLVMDIScopeGetFile(scope.raw));
        if file == call!(LLVMDIScopeGetFile(function.raw)) {
            return;
        }
        let place = self.place();
        let line = place.in_function(&function.file().0);
        let file = Some((place.file, place.directory));
        let mut lines = self.owner.foreign_lines.borrow_mut();
        let known = lines.entry(line).or_insert_with(|| file.clone());
        if *known != file {
            *known = None;
        }
    }

    /// The subprogram of a scope: itself, or what its blocks are in.
    pub fn enclosing_subprogram(self) -> Option<Metadata<'c>> {
        let mut scope = self;
        // Scopes nest as deeply as the source's braces.
        for _ in 0..10_000 {
            match call!(LLVMGetMetadataKind(scope.raw)) {
                SUBPROGRAM => return Some(scope),
                // Operands of a lexical block are file, scope.
                LEXICAL_BLOCK | LEXICAL_BLOCK_FILE => {
                    scope = scope.operands().get(1).copied().flatten()?
                }
                _ => return None,
            }
        }
        None
    }
}

/// Numbers of `LLVMMetadataKind`.
const SUBPROGRAM: u32 = 17;
const LEXICAL_BLOCK: u32 = 18;
const LEXICAL_BLOCK_FILE: u32 = 19;

impl<'c> Value<'c> {
    /// Metadata of an instruction by kind (see `Context::metadata_kind`): `range`, `nonnull`, `noundef`, `alias.scope`, `noalias`, `tbaa`, `llvm.loop`, ….
    pub fn metadata(self, context: &'c Context, kind: &str) -> Option<Metadata<'c>> {
        if !self.is_instruction() || call!(LLVMHasMetadata(self.raw())) == 0 {
            return None;
        }
        Metadata::of_value(
            context,
            call!(LLVMGetMetadata(self.raw(), context.metadata_kind(kind))),
        )
    }

    /// Sets metadata of an instruction.
    pub fn set_metadata(self, kind: &str, metadata: Metadata<'c>) -> Value<'c> {
        if self.is_instruction() {
            call!(LLVMSetMetadata(
                self.raw(),
                metadata.owner.metadata_kind(kind),
                metadata.to_value().raw()
            ));
        }
        self
    }

    /// All metadata of a global, or of an instruction except its debug location: number of the kind, node.
    pub fn all_metadata(self, context: &'c Context) -> Vec<(u32, Metadata<'c>)> {
        let mut count = 0;
        let entries = if self.is_instruction() {
            call!(LLVMInstructionGetAllMetadataOtherThanDebugLoc(
                self.raw(),
                &mut count
            ))
        } else if self.kind() == ValueKind::GlobalVariable {
            call!(LLVMGlobalCopyAllMetadata(self.raw(), &mut count))
        } else {
            return Vec::new();
        };
        let all = (0..count as u32)
            .filter_map(|index| {
                let node = Metadata::of(
                    context,
                    call!(LLVMValueMetadataEntriesGetMetadata(entries, index)),
                )?;
                Some((call!(LLVMValueMetadataEntriesGetKind(entries, index)), node))
            })
            .collect();
        call!(LLVMDisposeValueMetadataEntries(entries));
        all
    }

    /// The ranges of `!range`: pairs of bounds, the upper one excluded.
    pub fn range_metadata(self, context: &'c Context) -> Vec<(i128, i128)> {
        let Some(node) = self.metadata(context, "range") else {
            return Vec::new();
        };
        let bounds: Vec<i128> = node
            .operand_values()
            .into_iter()
            .flatten()
            .filter_map(Value::as_signed)
            .collect();
        bounds
            .chunks_exact(2)
            .map(|pair| (pair[0], pair[1]))
            .collect()
    }

    /// The debug location of an instruction as metadata.
    pub fn debug_location(self, context: &'c Context) -> Option<Metadata<'c>> {
        if !self.is_instruction() {
            return None;
        }
        Metadata::of(context, call!(LLVMInstructionGetDebugLoc(self.raw())))
    }

    /// Sets or removes it.
    pub fn set_debug_location(self, location: Option<Metadata<'c>>) {
        if self.is_instruction() {
            call!(LLVMInstructionSetDebugLoc(
                self.raw(),
                location.map_or(std::ptr::null_mut(), |metadata| metadata.raw)
            ));
        }
    }

    /// Where an instruction comes from: its own place first, then the call that inlined it, and so on outwards. Empty without debug information.
    pub fn source_places(self, context: &'c Context) -> Vec<SourcePlace> {
        let mut places = Vec::new();
        let mut current = self.debug_location(context);
        while let Some(location) = current {
            places.push(location.place());
            current = Metadata::of(context, call!(LLVMDILocationGetInlinedAt(location.raw)));
        }
        places
    }

    /// Where a function is defined.
    pub fn function_place(self, context: &'c Context) -> Option<SourcePlace> {
        let subprogram = self.subprogram(context)?;
        let line = call!(LLVMDISubprogramGetLine(subprogram.raw));
        Some(context.debug_location(line, 0, subprogram).place())
    }

    /// Where a global variable is defined.
    pub fn variable_place(self, context: &'c Context) -> Option<SourcePlace> {
        // The number of `LLVMDIGlobalVariableExpressionMetadataKind`.
        const VARIABLE: u32 = 7;
        let attached = self.all_metadata(context).into_iter();
        let mut described = attached
            .map(|(_, node)| node.raw)
            .filter(|&node| call!(LLVMGetMetadataKind(node)) == VARIABLE);
        let variable = call!(LLVMDIGlobalVariableExpressionGetVariable(described.next()?));
        let (file, directory) = name_of_file(call!(LLVMDIVariableGetFile(variable)));
        Some(SourcePlace {
            file,
            directory,
            line: call!(LLVMDIVariableGetLine(variable)),
            column: 0,
            function: String::new(),
            linkage_name: String::new(),
        })
    }
}

/// The name of a file, and the directory that it starts from.
fn name_of_file(file: MetadataRef) -> (String, String) {
    if file.is_null() {
        return (String::new(), String::new());
    }
    let mut length = 0;
    let name = call!(LLVMDIFileGetFilename(file, &mut length));
    let name = copy_text(name, length as usize);
    let directory = call!(LLVMDIFileGetDirectory(file, &mut length));
    (name, copy_text(directory, length as usize))
}

impl<'c> Module<'c> {
    /// Remembers which lines stand in another file than their function, as what a macro of another file was given does: scopes say so, which go when variables are dropped from debug information.
    pub fn keep_foreign_lines(self) {
        let mut seen = HashSet::new();
        for instruction in self.functions().flat_map(Value::instructions) {
            let mut current = instruction.debug_location(self.owner);
            while let Some(location) = current
                && seen.insert(location.raw)
            {
                location.keep_foreign_line();
                current = Metadata::of(self.owner, call!(LLVMDILocationGetInlinedAt(location.raw)));
            }
        }
    }
}

impl Context {
    /// A new name for accesses to memory that a loop is to say something of, see [`Metadata::parallel_loop`].
    pub fn access_group(&self) -> Option<Metadata<'_>> {
        // It is a distinct node without operands, which the C interface does not make but the parser does.
        let text = "!group = !{!0}\n!0 = distinct !{}\n";
        let module = self.parse_text("group", text).ok()?;
        let group = module.named_metadata("group").into_iter().next();
        // The node belongs to the context.
        module.dispose();
        group
    }

    /// A debug location within a scope.
    pub fn debug_location<'c>(
        &'c self,
        line: u32,
        column: u32,
        scope: Metadata<'c>,
    ) -> Metadata<'c> {
        let raw = call!(LLVMDIBuilderCreateDebugLocation(
            self.raw,
            line,
            column,
            scope.raw,
            std::ptr::null_mut()
        ));
        Metadata::node_at(self, raw)
    }
}

impl fmt::Debug for Metadata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&take_text(call!(LLVMPrintValueToString(
            self.to_value().raw()
        ))))
    }
}
