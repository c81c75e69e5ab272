//! Functions of other crates that are recognised by name.
//!
//! Functions of the crate `libm` become those of C's mathematical library. They work on the bits of floats, in ways that cannot be differentiated, but their names tell what they compute. The results of the C functions differ in the
//! last bits at most; with `--strict`, which forbids any difference, they are left as they are.

use ferrozyme_ir::Form;
use ferrozyme_library::{Known, Variant, demangle, is, mathematical, variant};
use ferrozyme_llvm::{Context, Linkage, Module, Type, TypeKind, Value};

/// Whether a function has two results. C's return the first, and put the other behind a pointer that is their last argument.
fn has_two_results(name: &str) -> bool {
    let form = mathematical(name).map(|function| function.opcode.form());
    let further = matches!(
        variant(name),
        Some(Variant::RemainderAndQuotient | Variant::LogGammaAndSign(_))
    );
    matches!(form, Some(Form::FloatSplit | Form::FloatPair)) || further
}

/// Puts C's functions in the place of the crate's.
pub(crate) fn call_library_functions<'c>(context: &'c Context, module: Module<'c>) {
    for function in module.functions().collect::<Vec<_>>() {
        let path = demangle(&function.name());
        // Methods of types are no functions of C.
        if path.starts_with('<') || !is(&function.name(), &Known::OfC) {
            continue;
        }
        let name = path.rsplit("::").next().unwrap_or(&path);
        if has_two_results(name) && !function.is_declaration() {
            call_for_two_results(context, module, function, name);
            continue;
        }
        let known =
            mathematical(name).is_some() || matches!(variant(name), Some(Variant::OfOrder(..)));
        let ty = function.value_type();
        if !known
            || !is_of_floats(ty, name)
            || module
                .symbol(name)
                .is_some_and(|other| !other.is_declaration())
        {
            continue;
        }
        let library = module.declare(name, ty);
        function.replace_uses_with(library);
    }
}

/// Makes a function that returns a pair call C's.
fn call_for_two_results<'c>(
    context: &'c Context,
    module: Module<'c>,
    function: Value<'c>,
    name: &str,
) {
    let pair = function.value_type().result();
    let parameters = function.parameters();
    let is_float = |value: &Value<'c>| value.ty().is_float();
    let [first, second] = pair.fields()[..] else {
        return;
    };
    if pair.kind() != TypeKind::Struct || !parameters.iter().all(is_float) {
        return;
    }
    let mut types: Vec<Type<'c>> = parameters.iter().map(|value| value.ty()).collect();
    types.push(context.pointer());
    let library = module.declare(name, first.function(&types, false));
    function.delete_body();
    function.set_linkage(Linkage::Internal);
    let builder = context.builder();
    builder.at_end(context.append_block(function, "entry"));
    let place = builder.alloca(second);
    let mut arguments = parameters;
    arguments.push(place);
    let result = builder.call_function(library, &arguments);
    let both = builder.insert_value(pair.poison(), result, 0);
    let both = builder.insert_value(both, builder.load(second, place), 1);
    builder.return_value(both);
}

/// Whether a function has floats of the type that its name says, and numbers of 32 bits, and nothing else.
fn is_of_floats(function: Type<'_>, name: &str) -> bool {
    let float = match name.ends_with('f') && name != "erf" {
        true => TypeKind::Float,
        false => TypeKind::Double,
    };
    let fits = |ty: Type<'_>| ty.kind() == float || ty.integer_width() == Some(32);
    fits(function.result()) && function.parameters().into_iter().all(fits)
}
