//! Laws of derivatives.
//!
//! `@main` maps (floats, memory before) to (results, memory after); J is the derivative of that map at the inputs. Forward
//! mode gives J·v for a random direction v, reverse mode Jᵀ·u for random weights u of all outputs, memory included.

mod choices;
mod differences;
mod second_order;
mod sweeps;

use super::passes::{finish_module, optimise_module, parallelise_module, separate_module};
use super::{Kind, Law, Subject, Tally, Violation, is_exact, start};
use crate::inputs::{Inputs, Outputs};
use crate::random::Random;
use crate::state::State;
use ferrozyme_diff::{
    Activity, Choices, Error, Request, differentiate_forward, differentiate_reverse,
    differentiate_split,
};
use ferrozyme_filetest::gradcheck::Precision;
use ferrozyme_ir::{FunctionId, Module, verify_module};
use ferrozyme_opt::check_facts;
use ferrozyme_refusal::{Refusal, UnknownBytes};
use sweeps::{forward_sweep, request, reverse_sweep, split_sweep};

/// How many tangents the law of widths carries at once.
const WIDTH: u32 = 3;

/// One in how many programs is differentiated twice.
const SECOND_ORDER: u64 = 8;

/// The laws that need the forward derivative.
const FORWARD: &[Law] = &[
    Law::Forward,
    Law::DotProduct,
    Law::Differences,
    Law::Width,
    Law::Inlining,
    Law::ForwardOfOptimised,
    Law::OptimisedForward,
    Law::ReverseOverForward,
];

/// The laws that need the reverse derivative.
const REVERSE: &[Law] = &[
    Law::Reverse,
    Law::DotProduct,
    Law::GradientDifferences,
    Law::Split,
    Law::Choices,
    Law::Inlining,
    Law::ReverseOfOptimised,
    Law::OptimisedReverse,
    Law::ReverseOnThreads,
    Law::Discarded,
    Law::ForwardOverReverse,
    Law::ReverseOverForward,
    Law::ReverseOverReverse,
];

/// The laws that need second derivatives.
const SECOND: &[Law] = &[
    Law::ForwardOverReverse,
    Law::ReverseOverForward,
    Law::ReverseOverReverse,
];

/// Checks the requested laws of derivatives.
pub fn check(
    subject: &Subject,
    inputs: &Inputs,
    outputs: &Outputs,
    laws: &[Law],
    tally: &mut Tally,
) -> Result<(), Violation> {
    let any = |of: &[Law]| laws.iter().any(|law| of.contains(law));
    if !any(FORWARD) && !any(REVERSE) {
        return Ok(());
    }
    // Memory that is declared constant must not flow together with other memory (through `select`, say). Whether it does
    // is the compiler's to say; then everything has a shadow.
    let mut shadowed = inputs.clone();
    if inputs.has_constant_memory() && refuses_constant_memory(subject, inputs) {
        shadowed.activate_memory();
    }
    let inputs = &shadowed;
    let mut random = Random::new(subject.seed ^ 0x6469_7265_6374_696f);
    let mut v = inputs.state.random_like(&mut random);
    inputs.restrict(&mut v);
    let mut u = outputs.state.random_like(&mut random);
    inputs.restrict_results(&mut u);
    let directions: Vec<State> = (1..WIDTH)
        .map(|_| {
            let mut direction = inputs.state.random_like(&mut random);
            inputs.restrict(&mut direction);
            direction
        })
        .collect();
    let experiment = Experiment {
        module: &subject.module,
        main: subject.main,
        inputs,
        outputs: &outputs.state,
        exact: is_exact(&subject.module),
        precision: Precision::of(&subject.module),
        v,
        u,
    };

    let wants = |law: Law| laws.contains(&law);
    let forward = if any(FORWARD) {
        start(Law::Forward, tally);
        Some(experiment.forward(Law::Forward, experiment.module, experiment.main)?)
    } else {
        None
    };
    let reverse = if any(REVERSE) {
        start(Law::Reverse, tally);
        Some(experiment.reverse(Law::Reverse, experiment.module, experiment.main)?)
    } else {
        None
    };
    if let (Some(forward), Some(reverse)) = (&forward, &reverse)
        && wants(Law::DotProduct)
    {
        start(Law::DotProduct, tally);
        experiment.modes_agree(&forward.tangent, &reverse.gradient)?;
    }
    if let Some(forward) = &forward {
        check_forward(&experiment, forward, &directions, laws, tally)?;
    }
    if let Some(reverse) = &reverse {
        check_reverse(
            &experiment,
            forward.as_ref(),
            reverse,
            laws,
            subject.seed,
            tally,
        )?;
        if any(SECOND) && subject.seed.is_multiple_of(SECOND_ORDER) {
            let w = &directions[0];
            check_second_order(&experiment, forward.as_ref(), reverse, w, laws, tally)?;
        }
    }
    Ok(())
}

/// What is said of tangents.
fn check_forward(
    experiment: &Experiment<'_>,
    forward: &Forward,
    directions: &[State],
    laws: &[Law],
    tally: &mut Tally,
) -> Result<(), Violation> {
    let wants = |law: Law| laws.contains(&law);
    if wants(Law::Differences) {
        start(Law::Differences, tally);
        if !experiment.tangent_agrees_with_differences(&forward.tangent)? {
            tally.skip(Law::Differences);
        }
    }
    if wants(Law::Width) {
        start(Law::Width, tally);
        experiment.widths_agree(forward, directions)?;
    }
    if wants(Law::ForwardOfOptimised) {
        start(Law::ForwardOfOptimised, tally);
        experiment.forward_of_optimised(&forward.tangent)?;
    }
    if wants(Law::OptimisedForward) {
        start(Law::OptimisedForward, tally);
        experiment.optimised_forward(forward)?;
    }
    Ok(())
}

/// What is said of gradients.
fn check_reverse(
    experiment: &Experiment<'_>,
    forward: Option<&Forward>,
    reverse: &Reverse,
    laws: &[Law],
    seed: u64,
    tally: &mut Tally,
) -> Result<(), Violation> {
    let wants = |law: Law| laws.contains(&law);
    if wants(Law::GradientDifferences) {
        start(Law::GradientDifferences, tally);
        if !experiment.gradient_agrees_with_differences(&reverse.gradient)? {
            tally.skip(Law::GradientDifferences);
        }
    }
    if wants(Law::Split) {
        start(Law::Split, tally);
        experiment.split_agrees(&reverse.gradient)?;
    }
    if wants(Law::Choices) {
        start(Law::Choices, tally);
        experiment.choices_agree(&reverse.gradient, seed)?;
    }
    if let (Some(forward), true) = (forward, wants(Law::Inlining)) {
        start(Law::Inlining, tally);
        experiment.inlining_agrees(&forward.tangent, &reverse.gradient, seed)?;
    }
    if wants(Law::ReverseOfOptimised) {
        start(Law::ReverseOfOptimised, tally);
        experiment.reverse_of_optimised(&reverse.gradient)?;
    }
    if wants(Law::OptimisedReverse) {
        start(Law::OptimisedReverse, tally);
        experiment.optimised_reverse(reverse)?;
    }
    if wants(Law::ReverseOnThreads) {
        start(Law::ReverseOnThreads, tally);
        experiment.reverse_on_threads(reverse)?;
    }
    if wants(Law::Discarded) {
        start(Law::Discarded, tally);
        experiment.discarded(&reverse.gradient)?;
    }
    Ok(())
}

/// What is said of second derivatives in a direction.
fn check_second_order(
    experiment: &Experiment<'_>,
    forward: Option<&Forward>,
    reverse: &Reverse,
    w: &State,
    laws: &[Law],
    tally: &mut Tally,
) -> Result<(), Violation> {
    let wants = |law: Law| laws.contains(&law);
    start(Law::ForwardOverReverse, tally);
    let (smooth, of_v, of_w) = experiment.forward_over_reverse(reverse, w)?;
    if !smooth {
        tally.skip(Law::ForwardOverReverse);
    }
    if let Some(forward) = forward
        && wants(Law::ReverseOverForward)
    {
        start(Law::ReverseOverForward, tally);
        experiment.reverse_over_forward(forward, &of_v)?;
    }
    if wants(Law::ReverseOverReverse) {
        start(Law::ReverseOverReverse, tally);
        experiment.reverse_over_reverse(reverse, w, &of_w)?;
    }
    Ok(())
}

/// Whether either mode refuses the program because of memory that is declared constant.
fn refuses_constant_memory(subject: &Subject, inputs: &Inputs) -> bool {
    let request = request(inputs, subject.main, 1);
    let forward = differentiate_forward(&mut subject.module.clone(), &request);
    let reverse = differentiate_reverse(&mut subject.module.clone(), &request);
    [forward.err(), reverse.err()]
        .iter()
        .flatten()
        .any(|error| {
            matches!(
                error.refusal,
                Refusal::ConstantArgument { .. } | Refusal::ConstantPassed | Refusal::ConstantCode
            )
        })
}

/// A program, its inputs, a direction, and weights of its outputs.
struct Experiment<'e> {
    module: &'e Module,
    main: FunctionId,
    inputs: &'e Inputs,
    outputs: &'e State,
    /// Whether no flag allows to compute otherwise.
    exact: bool,
    precision: Precision,
    v: State,
    u: State,
}

/// A forward derivative and its result.
struct Forward {
    module: Module,
    derivative: FunctionId,
    tangent: State,
}

/// A reverse derivative and its result.
struct Reverse {
    module: Module,
    derivative: FunctionId,
    gradient: State,
}

impl Experiment<'_> {
    /// The forward derivative of some version of the program.
    fn forward(&self, law: Law, module: &Module, main: FunctionId) -> Result<Forward, Violation> {
        let mut module = module.clone();
        let request = request(self.inputs, main, 1);
        let derivative = differentiate_forward(&mut module, &request)
            .map_err(|error| refused(law, "forward mode", &error))?;
        verified(law, self.module, &module, derivative)?;
        let tangent = self.tangent(law, "the forward derivative", &module, derivative)?;
        Ok(Forward {
            module,
            derivative,
            tangent,
        })
    }

    /// The reverse derivative of some version of the program.
    fn reverse(&self, law: Law, module: &Module, main: FunctionId) -> Result<Reverse, Violation> {
        self.reverse_with(law, module, main, Choices::default())
    }

    /// The reverse derivative of some version of the program, made in a certain way.
    fn reverse_with(
        &self,
        law: Law,
        module: &Module,
        main: FunctionId,
        choices: Choices,
    ) -> Result<Reverse, Violation> {
        let mut module = module.clone();
        let request = Request {
            choices,
            ..request(self.inputs, main, 1)
        };
        let derivative = differentiate_reverse(&mut module, &request)
            .map_err(|error| refused(law, "reverse mode", &error))?;
        verified(law, self.module, &module, derivative)?;
        let gradient = self.gradient(law, "the reverse derivative", &module, derivative)?;
        Ok(Reverse {
            module,
            derivative,
            gradient,
        })
    }

    fn tangent(
        &self,
        law: Law,
        what: &str,
        module: &Module,
        derivative: FunctionId,
    ) -> Result<State, Violation> {
        let directions = std::slice::from_ref(&self.v);
        let point = &self.inputs.state;
        let (primal, mut tangents) =
            forward_sweep(module, derivative, self.inputs, point, directions)
                .map_err(|fault| Violation::fault(law, &format!("{what} fails"), &fault))?;
        self.primal_kept(law, what, &primal)?;
        let tangent = tangents.remove(0);
        finite(law, "the tangent", &tangent)?;
        Ok(tangent)
    }

    fn gradient(
        &self,
        law: Law,
        what: &str,
        module: &Module,
        derivative: FunctionId,
    ) -> Result<State, Violation> {
        let (primal, gradient) =
            reverse_sweep(module, derivative, self.inputs, &self.inputs.state, &self.u)
                .map_err(|fault| Violation::fault(law, &format!("{what} fails"), &fault))?;
        self.primal_kept(law, what, &primal)?;
        finite(law, "the gradient", &gradient)?;
        Ok(gradient)
    }

    /// A derivative returns the results of the program and leaves its memory as the program does.
    fn primal_kept(&self, law: Law, what: &str, primal: &State) -> Result<(), Violation> {
        let same = if self.exact {
            self.outputs.same_bits(primal)
        } else {
            let tolerance = 1e-9 * (1.0 + self.outputs.largest());
            self.outputs.difference(primal, tolerance).is_none()
        };
        if same {
            return Ok(());
        }
        let difference = self.outputs.difference(primal, 0.0).unwrap_or_default();
        let detail = format!("{what} does not give the program's own results: {difference}");
        Err(Violation::new(law, Kind::Wrong, detail))
    }

    /// ⟨u, J·v⟩ = ⟨Jᵀ·u, v⟩.
    fn modes_agree(&self, tangent: &State, gradient: &State) -> Result<(), Violation> {
        let what = ["⟨u, J·v⟩", "⟨Jᵀ·u, v⟩"];
        self.products_agree(
            Law::DotProduct,
            what,
            (tangent, &self.u),
            (&self.v, gradient),
        )
    }

    fn products_agree(
        &self,
        law: Law,
        [one, other]: [&str; 2],
        left: (&State, &State),
        right: (&State, &State),
    ) -> Result<(), Violation> {
        let [left, right] = [left, right].map(|(a, b)| (a.numbers(), b.numbers()));
        let agreement = self
            .precision
            .compare_products((&left.0, &left.1), (&right.0, &right.1));
        agreement.map_err(|(left, right)| {
            let detail = format!("{one} is {left:?} but {other} is {right:?}");
            Violation::new(law, Kind::Wrong, detail)
        })
    }

    /// Several directions have the same tangents together and alone.
    fn widths_agree(&self, forward: &Forward, more: &[State]) -> Result<(), Violation> {
        let law = Law::Width;
        let mut module = forward.module.clone();
        let request = request(self.inputs, self.main, WIDTH);
        let derivative = differentiate_forward(&mut module, &request)
            .map_err(|error| refused(law, "forward mode of several tangents", &error))?;
        verified(law, self.module, &module, derivative)?;
        let mut directions = vec![self.v.clone()];
        directions.extend_from_slice(more);
        let point = &self.inputs.state;
        let (primal, together) =
            forward_sweep(&module, derivative, self.inputs, point, &directions).map_err(
                |fault| Violation::fault(law, "the derivative of several tangents fails", &fault),
            )?;
        self.primal_kept(law, "the derivative of several tangents", &primal)?;
        for (number, (direction, tangent)) in directions.iter().zip(&together).enumerate() {
            let one = std::slice::from_ref(direction);
            let (_, alone) = forward_sweep(&module, forward.derivative, self.inputs, point, one)
                .map_err(|fault| {
                    Violation::fault(law, "the derivative of one tangent fails", &fault)
                })?;
            let tolerance = 1e-12 * (1.0 + alone[0].largest());
            if let Some(difference) = alone[0].difference(tangent, tolerance) {
                let detail = format!("tangent {number} of {WIDTH}: {difference}");
                return Err(Violation::new(law, Kind::Wrong, detail));
            }
        }
        Ok(())
    }

    /// The split derivative equals the combined one.
    fn split_agrees(&self, gradient: &State) -> Result<(), Violation> {
        let law = Law::Split;
        let mut module = self.module.clone();
        let request = request(self.inputs, self.main, 1);
        let split = differentiate_split(&mut module, &request)
            .map_err(|error| refused(law, "split reverse mode", &error))?;
        verified(law, self.module, &module, split.augmented)?;
        let point = &self.inputs.state;
        let (primal, gradient_of_split) = split_sweep(&module, split, self.inputs, point, &self.u)
            .map_err(|fault| Violation::fault(law, "the split derivative fails", &fault))?;
        self.primal_kept(law, "the augmented function", &primal)?;
        let request = Request {
            keep_order: true,
            ..request
        };
        let combined = differentiate_reverse(&mut module, &request)
            .map_err(|error| refused(law, "reverse mode that keeps the order of sums", &error))?;
        verified(law, self.module, &module, combined)?;
        let what = "the derivative that keeps the order of sums";
        let in_order = self.gradient(law, what, &module, combined)?;
        if !gradient_of_split.same_bits(&in_order) {
            let difference = in_order.difference(&gradient_of_split, 0.0);
            let difference = difference.unwrap_or_default();
            let detail = format!("split and combined gradients differ: {difference}");
            return Err(Violation::new(law, Kind::Wrong, detail));
        }
        // Loops that are differentiated at once add up in another order.
        self.close(law, "the gradient", &in_order, gradient)
    }

    fn forward_of_optimised(&self, tangent: &State) -> Result<(), Violation> {
        let law = Law::ForwardOfOptimised;
        let mut module = self.module.clone();
        optimise_module(&mut module);
        let forward = self.forward(law, &module, self.main)?;
        self.close(law, "the tangent", tangent, &forward.tangent)
    }

    fn reverse_of_optimised(&self, gradient: &State) -> Result<(), Violation> {
        let law = Law::ReverseOfOptimised;
        let mut module = self.module.clone();
        optimise_module(&mut module);
        separate_module(&mut module);
        let reverse = self.reverse(law, &module, self.main)?;
        self.close(law, "the gradient", gradient, &reverse.gradient)
    }

    fn optimised_forward(&self, forward: &Forward) -> Result<(), Violation> {
        let law = Law::OptimisedForward;
        let mut module = forward.module.clone();
        finish_module(&mut module);
        verified(law, self.module, &module, forward.derivative)?;
        let what = "the optimised forward derivative";
        let tangent = self.tangent(law, what, &module, forward.derivative)?;
        self.close(law, "the tangent", &forward.tangent, &tangent)
    }

    fn optimised_reverse(&self, reverse: &Reverse) -> Result<(), Violation> {
        let law = Law::OptimisedReverse;
        let mut module = reverse.module.clone();
        finish_module(&mut module);
        verified(law, self.module, &module, reverse.derivative)?;
        let what = "the optimised reverse derivative";
        let gradient = self.gradient(law, what, &module, reverse.derivative)?;
        self.close(law, "the gradient", &reverse.gradient, &gradient)
    }

    fn reverse_on_threads(&self, reverse: &Reverse) -> Result<(), Violation> {
        let law = Law::ReverseOnThreads;
        let mut module = reverse.module.clone();
        finish_module(&mut module);
        if parallelise_module(&mut module) == 0 {
            return Ok(());
        }
        verify_module(&module)
            .map_err(|errors| Violation::invalid(law, "the parallel derivative", &errors))?;
        let point = &self.inputs.state;
        let (primal, gradient) =
            reverse_sweep(&module, reverse.derivative, self.inputs, point, &self.u)
                .map_err(|fault| Violation::fault(law, "the parallel derivative fails", &fault))?;
        // Sums in memory of the program's own are added up in another order, too.
        self.close(law, "what the program computes", self.outputs, &primal)?;
        self.close(law, "the gradient", &reverse.gradient, &gradient)
    }

    /// The program's memory is discarded, so less of it need be written; the gradient is the same.
    fn discarded(&self, expected: &State) -> Result<(), Violation> {
        let law = Law::Discarded;
        let mut module = self.module.clone();
        let mut request = request(self.inputs, self.main, 1);
        let memory = request.args.iter().map(|&a| a == Activity::Duplicated);
        request.discarded = memory.collect();
        let derivative = differentiate_reverse(&mut module, &request)
            .map_err(|error| refused(law, "reverse mode", &error))?;
        optimise_module(&mut module);
        verified(law, self.module, &module, derivative)?;
        let point = &self.inputs.state;
        let (_, gradient) = reverse_sweep(&module, derivative, self.inputs, point, &self.u)
            .map_err(|fault| Violation::fault(law, "the reverse derivative fails", &fault))?;
        self.close(law, "the gradient", expected, &gradient)
    }

    fn close(
        &self,
        law: Law,
        what: &str,
        expected: &State,
        given: &State,
    ) -> Result<(), Violation> {
        let tolerance = self.precision.derivative * (1.0 + expected.largest());
        match expected.difference(given, tolerance) {
            None => Ok(()),
            Some(difference) => {
                let detail = format!("{what} changes: {difference}");
                Err(Violation::new(law, Kind::Wrong, detail))
            }
        }
    }
}

fn refused(law: Law, what: &str, error: &Error) -> Violation {
    // Where a program was changed by optimisation or differentiation, uses may be gone that told floats from integers.
    let original = matches!(law, Law::Forward | Law::Reverse | Law::Width | Law::Split);
    let unknown = match &error.refusal {
        Refusal::UnknownBytes { what } => {
            matches!(what, UnknownBytes::Rest | UnknownBytes::Offset(_))
        }
        Refusal::UnknownLayout => !original,
        _ => false,
    };
    let kind = if unknown {
        Kind::Unknown
    } else {
        Kind::Refused
    };
    Violation::new(law, kind, format!("{what} refuses: {error}"))
}

/// A derivative verifies, and its declared facts follow from the bodies of its functions, if that holds for the program: the program's facts may say more than its bodies show.
fn verified(
    law: Law,
    program: &Module,
    module: &Module,
    derivative: FunctionId,
) -> Result<(), Violation> {
    let name = &module.functions[derivative].name;
    verify_module(module)
        .map_err(|errors| Violation::invalid(law, &format!("the derivative @{name}"), &errors))?;
    if !check_facts(program).is_empty() {
        return Ok(());
    }
    let made = program.functions.len() as u32;
    let mut problems = check_facts(module).into_iter();
    match problems.find(|(id, _)| id.as_u32() >= made) {
        Some((_, problem)) => Err(Violation::new(law, Kind::Invalid, problem)),
        None => Ok(()),
    }
}

fn finite(law: Law, what: &str, state: &State) -> Result<(), Violation> {
    if state.is_finite() {
        return Ok(());
    }
    let detail = format!("{what} is not finite: {state:?}");
    Err(Violation::new(law, Kind::NotFinite, detail))
}
