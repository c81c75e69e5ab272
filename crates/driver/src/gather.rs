//! Gathers the working module: all functions with a body that the differentiated functions reach, and nothing else.
//!
//! Modules are linked into it lazily: external symbols of a source are made `available_externally` first, which LLVM's linker copies only
//! if something refers to them, and local functions come with their users. This repeats until nothing more is found:
//! in the crate's codegen units, its dependencies, and the standard library's bitcode.
//!
//! Finally all functions and constants in it are private copies. Mutable globals must not be copied: they stay symbols of the program. If they are local to
//! their module, they get a visible name there ([`Gathered::promoted`]); in the standard library, which is already
//! compiled, functions that use such globals are left out.

use crate::frontend::{FRONT_ENDS, author_of};
use crate::inputs::{Inputs, Origin};
use crate::locals::{is_local, mark_tables, promote_locals};
use crate::opaque::is_opaque;
use crate::registrations::Registration;
use crate::report::Diagnostic;
use crate::requests::{DERIVATIVE_PREFIX, FoundRequest};
use ferrozyme_library::{Known, demangle, find, is, is_of_standard_library, is_outside};
use ferrozyme_llvm::{Context, Linkage, LlvmError, Metadata, Module, Place, Value, Visibility};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The working module, and the changes to the program's modules that follow from it.
#[derive(Clone)]
pub(crate) struct Gathered<'c> {
    /// All that the requests reach.
    pub(crate) module: Module<'c>,
    /// All requests, of requesting modules and of what they reach.
    pub(crate) requests: Vec<FoundRequest>,
    /// Registrations of functions that are reached.
    pub(crate) registrations: Vec<Registration>,
    /// New bitcode for modules: without requests, with promoted symbols.
    pub(crate) rewritten: BTreeMap<usize, Vec<u8>>,
    /// Functions of the standard library, and whether they are visible to others.
    from_std: HashMap<String, bool>,
    /// Which input a promoted global is from.
    promoted: HashMap<String, usize>,
    /// Functions whose addresses are compared, and which are therefore the program's own, not copies.
    pub(crate) originals: HashSet<String>,
    /// The compilers that wrote what was linked.
    pub(crate) compilers: BTreeSet<&'static str>,
    /// Whether the program wants to know which memory of arguments took the place of which.
    pub(crate) is_told_of_moves: bool,
    /// Whether the program runs the bodies of teams.
    pub(crate) runs_teams: bool,
    /// Whether every function has to be the one that the program calls.
    strict: bool,
}

impl<'c> Gathered<'c> {
    /// The same with a module of its own, to begin again from.
    pub(crate) fn duplicate(&self) -> Gathered<'c> {
        Gathered {
            module: self.module.duplicate(),
            ..self.clone()
        }
    }

    /// Discards the module, and starts again from another.
    pub(crate) fn replace_by(&mut self, other: Gathered<'c>) {
        std::mem::replace(self, other).module.dispose();
    }
}

/// A function of the program that is wanted for its address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    /// Its name in the module that defines it.
    pub(crate) name: String,
    /// The module, if the function is local to it.
    pub(crate) input: Option<usize>,
}

impl Wanted {
    /// What it is called once it is visible.
    pub(crate) fn symbol(&self) -> String {
        match self.input {
            None => self.name.clone(),
            Some(index) => {
                let mut hasher = DefaultHasher::new();
                (index, &self.name).hash(&mut hasher);
                // The name stays readable: it is shown when the function has no derivative.
                format!("{}{FUNCTION_SUFFIX}{:016x}", self.name, hasher.finish())
            }
        }
    }
}

/// The suffix of our copies of functions whose address is taken.
pub(crate) const COPY_SUFFIX: &str = ".ferrozyme";

/// The suffix of functions that were local to a module of the program, which calls them by the new names from then on.
pub(crate) const FUNCTION_SUFFIX: &str = ".ferrozyme_local_";

/// Brings more functions of the program into the working module, with what they reach. Those that are local become visible in their modules.
pub(crate) fn gather_more<'c>(
    context: &'c Context,
    inputs: &dyn Inputs,
    gathered: &mut Gathered<'c>,
    wanted: &[Wanted],
) -> Result<(), Vec<Diagnostic>> {
    let mut gathering = Gathering {
        context,
        inputs,
        module: gathered.module,
        work: gathered,
        linked: HashSet::new(),
    };
    Ok(gathering.add_functions(wanted)?)
}

/// Brings together what the requests of all modules reach. If that is `strict`, every function is the one that the program calls.
pub(crate) fn gather<'c>(
    context: &'c Context,
    inputs: &dyn Inputs,
    strict: bool,
) -> Result<Gathered<'c>, Vec<Diagnostic>> {
    let mut gathered = Gathered {
        module: context.create_module("ferrozyme"),
        requests: Vec::new(),
        registrations: Vec::new(),
        rewritten: BTreeMap::new(),
        from_std: HashMap::new(),
        promoted: HashMap::new(),
        originals: HashSet::new(),
        compilers: BTreeSet::new(),
        is_told_of_moves: inputs.defining(ferrozyme_diff::MOVED).is_some(),
        runs_teams: inputs.defining(ferrozyme_ir::TEAM).is_some(),
        strict,
    };
    let mut gathering = Gathering {
        context,
        inputs,
        module: gathered.module,
        work: &mut gathered,
        linked: HashSet::new(),
    };
    gathering.run()?;
    Ok(gathered)
}

struct Gathering<'c, 'i> {
    context: &'c Context,
    inputs: &'i dyn Inputs,
    module: Module<'c>,
    work: &'i mut Gathered<'c>,
    /// The inputs that were linked, with the symbols that they were linked for.
    linked: HashSet<(usize, String)>,
}

impl<'c> Gathering<'c, '_> {
    fn run(&mut self) -> Result<(), Vec<Diagnostic>> {
        self.read_registrations()?;
        let mut problems = Vec::new();
        let mut sources = Vec::new();
        for index in self.inputs.requesting() {
            let source = self.load(index, false)?;
            match self.replace_requests(source, index) {
                Ok(found) => self.add_requests(found),
                // A module with requests that could not be replaced is not used any further.
                Err(found) => {
                    problems.extend(found);
                    continue;
                }
            }
            promote_locals(source, &self.inputs.identity(index));
            self.work.rewritten.insert(index, rewritten(source)?);
            sources.push((index, source));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        // Roots first, so that each source is linked for the symbols they declare.
        for (index, source) in sources {
            if self.module.triple().is_empty() {
                self.module.set_triple(&source.triple());
                self.module.set_data_layout(&source.data_layout());
            }
            self.declare_primals(source);
            self.link(index, source, self.module)?;
        }
        self.close()?;
        self.find_given();
        self.leave_out_std_with_locals();
        self.rewrite_promoted()?;
        self.make_private(&HashSet::new());
        Ok(())
    }

    /// Brings in functions by name, and what they reach.
    fn add_functions(&mut self, wanted: &[Wanted]) -> Result<(), Diagnostic> {
        let known: HashSet<String> = self
            .module
            .functions()
            .filter(|function| !function.is_declaration())
            .map(|function| function.name())
            .collect();
        let mut local: BTreeMap<usize, Vec<&Wanted>> = BTreeMap::new();
        for function in wanted {
            match function.input {
                Some(index) => local.entry(index).or_default().push(function),
                None if self.module.function(&function.name).is_none() => {
                    let ty = self.context.void().function(&[], false);
                    self.module.add_function(&function.name, ty);
                }
                None => {}
            }
        }
        for (index, functions) in local {
            let input = self.inputs.get(index).map_err(Diagnostic::error)?;
            let bitcode = match self.work.rewritten.get(&index) {
                Some(bitcode) => bitcode,
                None => &*input.bitcode,
            };
            let source = self
                .context
                .parse_bitcode(&input.name, bitcode)
                .map_err(from_llvm)?;
            promote_locals(source, &self.inputs.identity(index));
            for function in &functions {
                if let Some(found) = source.function(&function.name) {
                    found.set_name(&function.symbol());
                    found
                        .set_linkage(Linkage::External)
                        .set_visibility(Visibility::Hidden);
                    let ty = self.context.void().function(&[], false);
                    if self.module.function(&function.symbol()).is_none() {
                        self.module.add_function(&function.symbol(), ty);
                    }
                }
            }
            self.work.rewritten.insert(index, rewritten(source)?);
            self.link(index, source, self.module)?;
        }
        self.close()?;
        self.find_given();
        self.leave_out_std_with_locals();
        self.rewrite_promoted()?;
        self.make_private(&known);
        Ok(())
    }

    /// Finds the functions that users gave to the function interface.
    fn find_given(&mut self) {
        for request in &mut self.work.requests {
            if request.is_of_interface() && request.given.is_none() {
                let primal = self.module.function(&request.primal);
                request.given =
                    primal.and_then(|primal| request.interface.find_given(self.context, primal));
            }
        }
    }

    /// Replaces the requests of all front ends.
    fn replace_requests(
        &self,
        source: Module<'c>,
        index: usize,
    ) -> Result<Vec<FoundRequest>, Vec<Diagnostic>> {
        let identity = self.inputs.identity(index);
        let mut found = Vec::new();
        for front_end in FRONT_ENDS {
            found.extend(front_end.replace_requests(self.context, source, &identity)?);
        }
        Ok(found)
    }

    fn add_requests(&mut self, found: Vec<FoundRequest>) {
        for request in found {
            if !self
                .work
                .requests
                .iter()
                .any(|other| other.symbol == request.symbol)
            {
                self.work.requests.push(request);
            }
        }
    }

    fn load(&self, index: usize, lazily: bool) -> Result<Module<'c>, Diagnostic> {
        let input = self.inputs.get(index).map_err(Diagnostic::error)?;
        // Uses of a variable may be anywhere in its module.
        let unit = input.origin == Origin::Unit;
        let parsed = if lazily && !unit {
            self.context
                .parse_bitcode_lazily(&input.name, &input.bitcode)
        } else {
            self.context.parse_bitcode(&input.name, &input.bitcode)
        };
        let module = parsed.map_err(|error| Diagnostic {
            notes: vec![error.to_string()],
            remedy: Some("run `cargo clean` if the toolchain changed".to_owned()),
            ..Diagnostic::error(format!("the bitcode of `{}` cannot be read", input.name))
        })?;
        if unit {
            mark_tables(module);
        }
        Ok(module)
    }

    fn read_registrations(&mut self) -> Result<(), Diagnostic> {
        for index in self.inputs.registering() {
            let source = self.load(index, true)?;
            let identity = self.inputs.identity(index);
            for front_end in FRONT_ENDS {
                let found = front_end.read_registrations(self.context, source, index, &identity)?;
                self.work.registrations.extend(found);
            }
            source.dispose();
        }
        Ok(())
    }

    /// Declares the primals that a source defines or declares.
    fn declare_primals(&mut self, source: Module<'c>) {
        for request in &self.work.requests {
            if let Some(primal) = source.function(&request.primal)
                && self.module.function(&request.primal).is_none()
            {
                self.module
                    .add_function(&request.primal, primal.value_type());
            }
        }
    }

    /// Declares the rules of functions that are reached, and returns whether there are new ones.
    fn declare_rules(&mut self) -> bool {
        let mut declared = false;
        for registration in &self.work.registrations {
            if self.module.function(&registration.primal).is_none() {
                continue;
            }
            for symbol in registration.symbols() {
                if self.module.function(symbol).is_none() {
                    // The type comes with the definition; declarations are replaced whatever theirs is.
                    let ty = self.context.void().function(&[], false);
                    self.module.add_function(symbol, ty);
                    declared = true;
                }
            }
        }
        declared
    }

    /// Local functions that are wanted by name are made visible.
    fn expose(&self, source: Module<'c>) {
        let primals = self
            .work
            .requests
            .iter()
            .map(|request| request.primal.as_str());
        let registered = self
            .work
            .registrations
            .iter()
            .flat_map(Registration::symbols);
        for symbol in primals.chain(registered) {
            if let Some(function) = source.function(symbol)
                && !function.is_declaration()
                && is_local(function)
            {
                function.set_linkage(Linkage::External);
            }
        }
    }

    /// Links the definitions of a source that a module declares.
    fn link(
        &mut self,
        index: usize,
        source: Module<'c>,
        into: Module<'c>,
    ) -> Result<(), Diagnostic> {
        let input = self.inputs.get(index).map_err(Diagnostic::error)?;
        let std = matches!(input.origin, Origin::Std { .. });
        for name in promote_locals(source, &self.inputs.identity(index)) {
            self.work.promoted.insert(name, index);
        }
        self.expose(source);
        let author = author_of(source).language().compiler;
        self.work.compilers.insert(author);
        for front_end in FRONT_ENDS {
            front_end.before_linking(self.context, source);
        }
        let registered: HashSet<String> = self
            .work
            .registrations
            .iter()
            .map(|registration| registration.primal.clone())
            .collect();
        for function in source.functions().collect::<Vec<_>>() {
            let name = function.name();
            if self.work.originals.contains(&name) && !is_local(function) {
                // This is the copy, not the function whose address is compared.
                function.set_name(&format!("{name}{COPY_SUFFIX}"));
            }
            if function.is_declaration() {
                continue;
            }
            if std {
                self.work
                    .from_std
                    .insert(function.name(), !is_local(function));
            }
            let of_unit = input.origin == Origin::Unit;
            if of_unit {
                function.remove_attribute(Place::Function, "optnone");
                allow_unrolling(self.context, function);
            }
            if of_unit || !std && is_kept_apart(function) {
                // Unoptimised code of C carries it everywhere, and what people mean by `#[inline(never)]` is the program's own code: derivatives
                // are better where caller and callee are seen together.
                function.remove_attribute(Place::Function, "noinline");
                if registered.contains(&function.name()) {
                    function.add_attribute(Place::Function, self.context.attribute("noinline", 0));
                }
            }
            if !is_local(function) {
                function.set_linkage(Linkage::AvailableExternally);
            }
            function.clear_comdat();
        }
        for global in source.globals().collect::<Vec<_>>() {
            if global.linkage() == Linkage::Appending {
                global.erase();
                continue;
            }
            if global.is_declaration() || is_local(global) {
                continue;
            }
            global.clear_comdat();
            global.set_linkage(Linkage::AvailableExternally);
        }
        source.set_inline_assembly("");
        into.link(source).map_err(from_llvm)
    }

    /// Links definitions of what is declared, until there are no more.
    fn close(&mut self) -> Result<(), Diagnostic> {
        loop {
            if !self.work.strict {
                self.substitute();
            }
            for front_end in FRONT_ENDS {
                front_end.after_linking(self.context, self.module);
            }
            let mut wanted: BTreeMap<usize, Vec<String>> = BTreeMap::new();
            for symbol in self.module.functions().chain(self.module.globals()) {
                let name = symbol.name();
                let constant_elsewhere = symbol.is_function() || symbol.is_global_constant();
                if !symbol.is_declaration()
                    || !constant_elsewhere
                    || name.starts_with("llvm.")
                    || name.starts_with(DERIVATIVE_PREFIX)
                    || is_opaque(&name, symbol) && !self.is_formatting_of_program(&name, symbol)
                    || self.work.originals.contains(&name)
                {
                    continue;
                }
                if let Some(index) = self.defining(&name)
                    && !self.is_compiler_support(index)
                    && self.linked.insert((index, name.clone()))
                {
                    wanted.entry(index).or_default().push(name);
                }
            }
            if wanted.is_empty() {
                if self.declare_rules() {
                    continue;
                }
                return Ok(());
            }
            // LLVM scans the whole destination at each link, so the sources of a round are linked together first.
            let together = self.module_for(wanted.values().flatten());
            for index in wanted.into_keys() {
                let source = self.load(index, true)?;
                if FRONT_ENDS.iter().any(|front_end| front_end.asks(source)) {
                    // Requests there were found when the requesting modules were read; this makes the same calls of them.
                    let source = self.load(index, false)?;
                    self.replace_requests(source, index)
                        .map_err(|mut all| all.remove(0))?;
                    self.link(index, source, together)?;
                    continue;
                }
                self.link(index, source, together)?;
            }
            self.module.link(together).map_err(from_llvm)?;
        }
    }

    /// Replaces functions by the program's own plain implementations of them.
    fn substitute(&self) {
        for function in self.module.functions().collect::<Vec<_>>() {
            let computed_by = |known: &Known| match known {
                Known::ComputedBy(other) => Some(*other),
                _ => None,
            };
            if function.is_declaration()
                && let Some(name) = find(&function.name(), computed_by)
                && self.inputs.defining(name).is_some()
            {
                let substitute = self.module.declare(name, function.value_type());
                function.replace_uses_with(substitute);
                function.erase();
            }
        }
    }

    /// A module with the working module's declarations of these names.
    fn module_for<'n>(&self, names: impl Iterator<Item = &'n String>) -> Module<'c> {
        let module = self.context.create_module("ferrozyme");
        module.set_triple(&self.module.triple());
        module.set_data_layout(&self.module.data_layout());
        for name in names {
            if let Some(function) = self.module.function(name) {
                module.add_function(name, function.value_type());
            } else if let Some(global) = self.module.global(name) {
                module
                    .add_global(name, global.value_type())
                    .set_global_constant(true);
            }
        }
        module
    }

    /// The input that defines a symbol. What is local there is found if it was registered there.
    fn defining(&self, name: &str) -> Option<usize> {
        self.inputs.defining(name).or_else(|| {
            let registers =
                |registration: &&Registration| registration.symbols().any(|symbol| symbol == name);
            let registration = self.work.registrations.iter().find(registers)?;
            Some(registration.source)
        })
    }

    /// Whether a function is part of formatting as it was made for a type of the program: it stays outside, but code of the program may be behind it.
    fn is_formatting_of_program(&self, name: &str, symbol: Value<'c>) -> bool {
        let ends = symbol.is_function() && symbol.has_attribute(Place::Function, "noreturn");
        let of_program = |index| {
            let input = self.inputs.get(index);
            input.is_ok_and(|input| !matches!(input.origin, Origin::Std { .. }))
        };
        is(name, &Known::Formatting) && !ends && self.defining(name).is_some_and(of_program)
    }

    /// The functions that compilers call by their C names (`memcpy`, `cbrt`, `__udivti3`) are operations, not programs: a copy would hide what it is.
    fn is_compiler_support(&self, index: usize) -> bool {
        let Ok(input) = self.inputs.get(index) else {
            return false;
        };
        let Origin::Std { archive } = input.origin else {
            return false;
        };
        archive
            .file_name()
            .is_some_and(|name| name.to_string_lossy().contains("compiler_builtins"))
    }

    /// The standard library's own memory cannot be reached from here: what uses it stays outside.
    fn leave_out_std_with_locals(&mut self) {
        let mut tainted: Vec<Value<'c>> = self
            .module
            .globals()
            .filter(|global| {
                self.work
                    .promoted
                    .get(&global.name())
                    .and_then(|&index| self.inputs.get(index).ok())
                    .is_some_and(|input| matches!(input.origin, Origin::Std { .. }))
            })
            .collect();
        let mut seen = HashSet::new();
        let mut local = Vec::new();
        while let Some(symbol) = tainted.pop() {
            for function in functions_using(symbol) {
                if !seen.insert(function) {
                    continue;
                }
                match self.is_visible_in_std(&function.name()) {
                    Some(true) => function.delete_body(),
                    Some(false) => {
                        tainted.push(function);
                        local.push(function);
                    }
                    None => {}
                }
            }
        }
        // Nobody is left who calls these; but tables may still name them, and they must not be taken for functions that a pointer may lead to.
        for function in &local {
            function.delete_body();
        }
        for function in local {
            if function.is_used() {
                function.replace_uses_with(function.ty().zero());
            }
            function.erase();
        }
    }

    /// Whether a function of the standard library is visible to others; none if it is not from there. Local functions get a number behind their names for each time that
    /// they met others of the same name.
    fn is_visible_in_std(&self, name: &str) -> Option<bool> {
        if let Some(&visible) = self.work.from_std.get(name) {
            return Some(visible);
        }
        let mut rest = name;
        while let Some((name, number)) = rest.rsplit_once('.')
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            if let Some(&visible) = self.work.from_std.get(name) {
                return (!visible).then_some(false);
            }
            rest = name;
        }
        None
    }

    /// Modules whose local memory is used from the working module give it a name.
    fn rewrite_promoted(&mut self) -> Result<(), Diagnostic> {
        let used: BTreeSet<usize> = self
            .module
            .globals()
            .filter_map(|global| self.work.promoted.get(&global.name()).copied())
            .collect();
        for index in used {
            let input = self.inputs.get(index).map_err(Diagnostic::error)?;
            if self.work.rewritten.contains_key(&index)
                || matches!(input.origin, Origin::Std { .. })
            {
                continue;
            }
            let source = self.load(index, false)?;
            promote_locals(source, &self.inputs.identity(index));
            self.work.rewritten.insert(index, rewritten(source)?);
            source.dispose();
        }
        Ok(())
    }

    /// Makes all that was brought in private, but for what was `known` before.
    fn make_private(&mut self, known: &HashSet<String>) {
        // What is known by name must keep name and signature; the roots call the primals only, which may change.
        let kept: HashSet<&str> = self
            .work
            .registrations
            .iter()
            .flat_map(Registration::symbols)
            .collect();
        for function in self.module.functions().collect::<Vec<_>>() {
            if function.is_declaration() {
                function.set_linkage(Linkage::External);
                continue;
            }
            if known.contains(&function.name()) {
                continue;
            }
            specialise_layouts(self.context, function);
            // The machinery of the runtime stays outside: its body must not come in through the inliner.
            let name = function.name();
            let of_runtime = self.work.from_std.contains_key(&name)
                || demangle(&name) == name && is_outside(&name)
                || is(&name, &Known::Formatting);
            if of_runtime && is_opaque(&name, function) {
                function.remove_attribute(Place::Function, "alwaysinline");
                function.remove_attribute(Place::Function, "inlinehint");
                function.add_attribute(Place::Function, self.context.attribute("noinline", 0));
            }
            let linkage = match kept.contains(function.name().as_str()) {
                true => Linkage::External,
                false => Linkage::Internal,
            };
            function
                .set_visibility(Visibility::Default)
                .set_linkage(linkage);
        }
        for global in self.module.globals().collect::<Vec<_>>() {
            if global.is_declaration() {
                continue;
            }
            if global.is_global_constant() {
                global
                    .set_visibility(Visibility::Default)
                    .set_linkage(Linkage::Internal);
            } else {
                global.set_initialiser(None);
                global.set_linkage(Linkage::External);
            }
        }
    }
}

/// With `-O1` clang forbids for each loop that it is unrolled; tiny loops are, before they are differentiated.
fn allow_unrolling<'c>(context: &'c Context, function: Value<'c>) {
    const FORBIDDEN: &str = "llvm.loop.unroll.disable";
    for block in function.blocks() {
        let Some(end) = block.terminator() else {
            continue;
        };
        let Some(known) = end.metadata(context, "llvm.loop") else {
            continue;
        };
        let properties = known.operands();
        let forbids = |property: &Option<Metadata<'c>>| {
            let first = property.and_then(|property| property.operands().into_iter().next());
            first.flatten().and_then(|name| name.as_text()).as_deref() == Some(FORBIDDEN)
        };
        if !properties.iter().skip(1).any(forbids) {
            continue;
        }
        // The first operand is the node itself.
        let kept: Vec<Option<Metadata<'c>>> = properties
            .into_iter()
            .skip(1)
            .filter(|property| !forbids(property))
            .collect();
        end.set_metadata("llvm.loop", Metadata::distinct_node(context, &kept));
    }
}

/// Whether it is the program that does not want a function to be inlined, and not a library or what we know of it.
fn is_kept_apart(function: Value<'_>) -> bool {
    let name = function.name();
    function.has_attribute(Place::Function, "noinline")
        && !is_of_standard_library(&name)
        && !is_opaque(&name, function)
}

/// What is told the layout of elements is inlined, whatever LLVM would think of it.
fn specialise_layouts<'c>(context: &'c Context, function: Value<'c>) {
    if is(&function.name(), &Known::TakesLayouts) {
        function.remove_attribute(Place::Function, "noinline");
        function.add_attribute(Place::Function, context.attribute("alwaysinline", 0));
    }
}

/// The functions in which a symbol occurs, also within constants.
fn functions_using(symbol: Value<'_>) -> Vec<Value<'_>> {
    let mut functions = Vec::new();
    let mut seen = HashSet::new();
    let mut work = vec![symbol];
    while let Some(value) = work.pop() {
        for user in value.users() {
            if user.is_instruction() {
                functions.extend(user.block().map(|block| block.function()));
            } else if seen.insert(user) {
                work.push(user);
            }
        }
    }
    functions
}

/// A module as it goes back into the link: with a summary, like those that rustc writes, so that what it calls in them is inlined.
fn rewritten(module: Module<'_>) -> Result<Vec<u8>, Diagnostic> {
    module.to_bitcode_with_summary().map_err(from_llvm)
}

fn from_llvm(error: LlvmError) -> Diagnostic {
    Diagnostic {
        notes: vec![error.to_string()],
        ..Diagnostic::error("modules could not be linked for differentiation")
    }
}
