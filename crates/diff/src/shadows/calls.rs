//! What a call needs of the derivative of its callee.

use super::{Mode, Sweep};
use crate::activity::{Activities, Giver, Question, analyse_activity};
use crate::error::Error;
use crate::given_code::stop_without_table;
use crate::objects::{Known, Objects, ObjectsCache, ValueKind};
use crate::request::{Activity, Request};
use crate::statics::Assumption;
use ferrozyme_ir::{
    Builder, Constant, Function, FunctionId, Layout, Module, Op, Payload, Symbol, Type, Value,
};
use ferrozyme_refusal::Refusal;
use smallvec::SmallVec;
use std::sync::Arc;

/// What determines the derivative of a function, in either mode.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Signature {
    /// The function.
    pub function: FunctionId,
    /// What its arguments mean.
    pub args: Vec<Activity>,
    /// What its results mean.
    pub results: Vec<Activity>,
    /// What is known of the memory behind each argument, and then of that behind each result.
    pub layouts: Vec<Option<Layout>>,
    /// Whether memory that each argument leads to holds floats where at other times it holds pointers or integers.
    pub unions: Vec<bool>,
    /// Whether some of the memory that each argument leads to may be constant, and its own shadow.
    pub constants: Vec<bool>,
}

impl Signature {
    /// That of a derivative that somebody asks for. A function with a rule is asked for as what calls it.
    pub(crate) fn of_request<M: Mode>(module: &mut Module, request: &Request) -> Signature {
        let function = request.function;
        Signature {
            function: match module.rules.get(&function).and_then(M::rule) {
                Some(_) => call_of(module, function),
                None => function,
            },
            ..Signature::new(request)
        }
    }

    fn new(request: &Request) -> Signature {
        Signature {
            function: request.function,
            args: request.args.clone(),
            results: request.results.clone(),
            layouts: vec![None; request.args.len()],
            unions: request.shapes(),
            constants: vec![false; request.args.len()],
        }
    }

    /// That of the derivative of a function whose address is taken: nobody knows who calls it.
    ///
    /// # Errors
    /// If it has no derivative that could be found from its address.
    pub(crate) fn behind_pointer<M: Mode>(
        module: &mut Module,
        function: FunctionId,
    ) -> Result<Signature, Error> {
        let primal = &module.functions[function];
        let gives_pointers = primal.results.iter().any(|ty| ty.is_ptr());
        let mut request = Request::usual(module, function);
        if primal.facts.inactive && !gives_pointers {
            // It has no derivative, which a call of it says.
            request.function = call_of(module, function);
        }
        let signature = Signature::of_request::<M>(module, &request);
        let primal = &module.functions[signature.function];
        if primal.body.is_some() {
            return Ok(signature);
        }
        let function = primal.name.clone();
        let refusal = match primal.facts.inactive {
            true => Refusal::InactiveResult { function },
            false => Refusal::NoBodyBehindPointer { function },
        };
        Err(Error::of(&primal.name, refusal))
    }

    /// What is found out about the function.
    ///
    /// # Errors
    /// If something active in it cannot be differentiated.
    pub(crate) fn analyse(
        &self,
        module: &Module,
        cache: &mut ObjectsCache,
        giver: Giver,
        assumption: &mut Assumption,
    ) -> Result<(Arc<Objects>, Activities), Error> {
        let known = Known {
            layouts: &self.layouts,
            unions: &self.unions,
        };
        let objects = Objects::analyse(module, self.function, cache, Some(known));
        let question = Question {
            function: self.function,
            args: &self.args,
            results: &self.results,
            giver,
            constants: &self.constants,
        };
        let activities = analyse_activity(module, &objects, &question, assumption)?;
        Ok((objects, activities))
    }

    /// Whether a recursive call, which may know more or less of its arguments than the call that is under way, is served by the same derivative: all calls of a recursion were analysed
    /// together.
    pub(crate) fn serves(&self, other: &Signature) -> bool {
        (self.function, &self.args, &self.results) == (other.function, &other.args, &other.results)
            && (&self.unions, &self.constants) == (&other.unions, &other.constants)
    }
}

/// A function that does nothing but call another.
fn call_of(module: &mut Module, function: FunctionId) -> FunctionId {
    let primal = &module.functions[function];
    let name = format!("{}.call", primal.name);
    if let Some(known) = module.function_named(&name) {
        return known;
    }
    let (params, results) = (primal.params.clone(), primal.results.clone());
    let mut call = Function::define(name, params, results.clone());
    call.facts = primal.facts.clone();
    call.facts.inactive = false;
    let arguments = call.arguments().to_vec();
    let op = Builder::at_body(&mut call).call(function, &arguments, &results);
    let given = call.ops[op].results.to_vec();
    Builder::at_body(&mut call).ret(&given);
    module.functions.push(call)
}

/// Those of some values that are floats by their types.
pub(crate) fn floats_among(function: &Function, values: &[Value]) -> Vec<Value> {
    let values = values.iter().copied();
    values
        .filter(|&value| function.ty(value).is_float())
        .collect()
}

impl<M: Mode> Sweep<'_, M> {
    /// Calls of functions with bodies, and of functions with a rule that the user gives.
    pub(super) fn visit_call(&mut self, op: Op) -> Result<(), Error> {
        if !self.is_active_call(op) {
            self.keep(op);
            return Ok(());
        }
        let Payload::Callee(callee) = self.function.ops[op].payload else {
            unreachable!("a verified call has a callee")
        };
        let rule = self.module().rules.get(&callee).and_then(M::rule);
        if let Some(rule) = rule {
            let data = &self.function.ops[op];
            self.refuse_carried_floats(op, &data.operands)?;
            self.refuse_constants(op, &data.operands)?;
            return M::visit_call_with_rule(self, op, callee, rule);
        }
        if self.module().functions[callee].body.is_none() {
            let callee = self.module().functions[callee].name.clone();
            let forward = M::TANGENTS;
            return Err(self.error(op, Refusal::NoRule { callee, forward }));
        }
        let signature = self.signature_of_call(op, callee);
        M::visit_call_with_body(self, op, signature)
    }

    fn is_active_call(&self, op: Op) -> bool {
        let function = &self.function;
        self.activities
            .is_active_call(self.module(), function, self.objects, op)
    }

    /// What a value is to a callee.
    pub(crate) fn activity_of(&self, value: Value) -> Activity {
        // A pointer that leads nowhere is its own shadow, and the callee may choose between it and others.
        let leads_nowhere = || self.function.ty(value) == Type::PTR && self.class(value).is_none();
        if self.has_shadow(value) || leads_nowhere() {
            Activity::Duplicated
        } else if self.is_active(value) || M::TANGENTS && self.has_companions(value) {
            Activity::Active
        } else {
            Activity::Const
        }
    }

    /// Which derivative a call needs. Words that the callee calculates with are checked to be numbers, and have no companions there.
    fn signature_of_call(&mut self, op: Op, callee: FunctionId) -> Signature {
        let data = self.function.ops[op].clone();
        let mut args: Vec<Activity> = data.operands.iter().map(|&v| self.activity_of(v)).collect();
        let is_word = |value| self.objects.union_of_value(&self.function, value).is_some();
        let words: Vec<bool> = data.operands.iter().map(|&value| is_word(value)).collect();
        if words.contains(&true) {
            let objects = self.mode.session_mut().own_objects(callee);
            for (index, &argument) in data.operands.iter().enumerate() {
                let function = &self.module().functions[callee];
                let param = function.arguments()[index];
                let calculates = objects.kind_of_value(function, param) == ValueKind::Integer;
                if words[index] && calculates && args[index] != Activity::Const {
                    self.check_number(op, argument);
                    args[index] = Activity::Const;
                }
            }
        }
        let mut unions: Vec<bool> = data
            .operands
            .iter()
            .map(|&v| self.leads_to_union(v))
            .collect();
        if unions.contains(&true) {
            // What leads nowhere does not speak against it.
            for (union, &value) in unions.iter_mut().zip(&data.operands) {
                *union |= self.class(value).is_none();
            }
        }
        let constants = data.operands.iter().map(|&v| self.leads_to_constants(v));
        let both = data.operands.iter().chain(&data.results);
        Signature {
            function: callee,
            args,
            results: data.results.iter().map(|&v| self.activity_of(v)).collect(),
            layouts: both.map(|&v| self.layout_behind(v)).collect(),
            unions,
            constants: constants.collect(),
        }
    }

    /// What is known of the memory behind a pointer.
    fn layout_behind(&self, value: Value) -> Option<Layout> {
        let (class, offset) = self.objects.class_of(&self.function, value)?;
        self.objects.layout_of(class, offset)
    }

    /// The arguments of a call, each followed by its companions if it `has` them.
    pub(crate) fn arguments_with_companions(
        &mut self,
        op: Op,
        args: &[Value],
        has: impl Fn(usize, Type) -> bool,
    ) -> Result<SmallVec<[Value; 4]>, Error> {
        let mut operands = SmallVec::new();
        for (index, &arg) in args.iter().enumerate() {
            operands.push(arg);
            let ty = self.function.ty(arg);
            if has(index, ty) {
                let parts = self.objects.parts_of_value(arg);
                let lanes = self.companions_of(op, arg, &parts)?;
                operands.extend(match ty.is_ptr() {
                    true => self.without_marks(op, arg, lanes),
                    false => lanes,
                });
            }
        }
        Ok(operands)
    }

    /// Whether a value of this type has companions wherever nothing but types is known: for rules and functions behind pointers.
    pub(crate) fn has_usual_companions(ty: Type) -> bool {
        ty.is_ptr() || (M::TANGENTS && ty.is_float())
    }

    /// Which arguments of a call are not constant, for a rule that asks.
    pub(crate) fn mask_of(&self, args: &[Value]) -> u64 {
        let active = args.iter().enumerate();
        active
            .filter(|&(_, &arg)| self.activity_of(arg) != Activity::Const)
            .fold(0, |mask, (index, _)| mask | 1 << index.min(63))
    }

    /// Rules and functions behind pointers know floats and pointers by their types only.
    fn refuse_carried_floats(&self, op: Op, args: &[Value]) -> Result<(), Error> {
        let mut values = args.iter().chain(&self.function.ops[op].results);
        let is_carried = |&value: &Value| {
            self.function.ty(value).is_int()
                && (self.has_companions(value) && !self.is_part(value) || self.is_active(value))
        };
        match values.any(is_carried) {
            true => Err(self.error(op, Refusal::FloatAsInteger)),
            false => Ok(()),
        }
    }

    /// A call through a pointer. The shadow of the pointer leads to a table of the derivatives (see `given_code.rs`).
    pub(super) fn visit_indirect_call(&mut self, op: Op) -> Result<(), Error> {
        if !self.is_active_call(op) {
            self.keep(op);
            return Ok(());
        }
        let data = self.function.ops[op].clone();
        if self.mode.session_mut().parts().1.resolved {
            return Err(self.error(op, Refusal::GivenCode));
        }
        let (target, args) = (data.target(), data.arguments());
        self.refuse_carried_floats(op, args)?;
        self.refuse_constants(op, args)?;
        if args.iter().any(|&arg| self.leads_to_union(arg)) {
            return Err(self.error(op, Refusal::UnionToPointer));
        }
        let table = match self.function.constant_of(target) {
            Some(&Constant::Function(function)) => self.shadow_of_function(op, function)?,
            _ => {
                self.refuse_constant_code(op, target)?;
                let table = self.shadows_to_follow(op, target)?[0];
                stop_without_table(&mut self.builder(op), target, table);
                table
            }
        };
        let operands =
            self.arguments_with_companions(op, args, |_, ty| Self::has_usual_companions(ty))?;
        M::visit_call_of_table(self, op, table, operands)?;
        let results = self.function.ops[op].results.iter();
        let types: Vec<Type> = results.map(|&v| self.function.ty(v)).collect();
        self.function.ops[op].payload = Payload::Results(types.into());
        self.keep(op);
        Ok(())
    }

    /// The shadow of the address of a function: the table of its derivatives.
    pub(super) fn shadow_of_function(
        &mut self,
        op: Op,
        function: FunctionId,
    ) -> Result<Value, Error> {
        let shadow = self.mode.session_mut().shadow_of_function(function);
        let shadow = shadow.map_err(|error| {
            let name = &self.module().functions[self.objects.function()].name;
            error.called_from(name, self.function.ops[op].location)
        })?;
        let shadow = match shadow {
            Symbol::Global(table) => Constant::Global(table),
            Symbol::Function(function) => Constant::Function(function),
        };
        Ok(self.function.constant(Type::PTR, shadow))
    }

    /// Gives results of a call of which only types are known their companions, as more results.
    pub(crate) fn add_usual_companion_results(&mut self, op: Op) {
        for result in self.function.ops[op].results.clone() {
            if Self::has_usual_companions(self.function.ty(result)) {
                self.add_companion_results(op, result);
            }
        }
    }
}
