//! Both sweeps of split mode, called one after the other.

use super::Split;
use crate::request::Request;
use ferrozyme_ir::{Builder, Function, FunctionId, Module, ParamFacts, Type, Value};

/// The two functions of split reverse mode as one, with the signature of combined reverse mode.
pub(super) fn join_split(module: &mut Module, split: Split, request: &Request) -> FunctionId {
    let (augmented, reverse) = (
        &module.functions[split.augmented],
        &module.functions[split.reverse],
    );
    let given = augmented.params.len();
    let seeds = reverse.params.len() - given - 1;
    let mut params = augmented.params.clone();
    params.extend(reverse.params[given..given + seeds].iter().cloned());
    for param in &mut params {
        // What lies in memory is needed between the two.
        param.facts = ParamFacts {
            noalias: param.facts.noalias,
            align: param.facts.align,
            range: param.facts.range,
            layout: param.facts.layout.take(),
            ..ParamFacts::default()
        };
    }
    let (found, gradients) = (augmented.results.clone(), reverse.results.clone());
    let kept = match request.primal {
        true => request.results.len(),
        false => 0,
    };
    let results: Vec<Type> = found[..kept].iter().chain(&gradients).copied().collect();
    let level = augmented.facts.level;
    let name = module.fresh_name(&format!("{}.grad", module.functions[request.function].name));
    let mut target = Function::define(name, params, results);
    target.facts.level = level;
    let arguments = target.arguments().to_vec();
    let mut b = Builder::at_body(&mut target);
    let forwards = b.call(split.augmented, &arguments[..given], &found);
    let found = target.ops[forwards].results.to_vec();
    let mut passed = arguments;
    passed.extend(found.last());
    let mut b = Builder::at_body(&mut target);
    let backwards = b.call(split.reverse, &passed, &gradients);
    let gradients = target.ops[backwards].results.to_vec();
    let values: Vec<Value> = found[..kept].iter().chain(&gradients).copied().collect();
    Builder::at_body(&mut target).ret(&values);
    module.functions.push(target)
}
