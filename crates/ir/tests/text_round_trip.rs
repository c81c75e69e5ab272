//! Laws of the text form, on random modules with every operation, fact and constant:
//! `parse(print(m))` is `m`, `print(parse(t))` is stable, and no text makes the parser panic.

use ferrozyme_ir::entity::EntityRef;
use ferrozyme_ir::{
    Alignment, Builder, Constant, Field, Flags, FloatPredicate, Form, Function, FunctionFacts,
    FunctionId, Global, GlobalId, IndexClass, IntPredicate, Layout, Location, LocationData,
    MemoryEffect, Module, Op, OpData, Opcode, Param, ParamFacts, Payload, ProcessorLevel, Range,
    Region, Rule, Scalar, Symbol, Type, Value, ValueDef, ones, parse_module, print_function,
    print_module, print_op,
};
use std::collections::HashMap;

#[test]
fn random_modules_read_back() {
    for seed in 0..300 {
        let module = Generator::new(seed).module();
        let text = print_module(&module);
        let parsed = parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(print_module(&parsed), text);
        assert_same_module(&module, &parsed);
    }
}

#[test]
fn random_modules_cover_all_operations() {
    let text: String = (0..20)
        .map(|seed| print_module(&Generator::new(seed).module()))
        .collect();
    for opcode in Opcode::ALL {
        let word = format!("{opcode} ");
        assert!(
            text.contains(&word) || text.contains(&format!("{opcode}\n")),
            "{opcode} does not occur"
        );
    }
}

/// Damaged texts are parsed or refused; what is parsed prints stably.
#[test]
fn damaged_texts_do_no_harm() {
    let mut accepted = 0;
    for seed in 0..60 {
        let text = print_module(&Generator::new(seed).module());
        let mut random = Random(seed + 1000);
        for _ in 0..60 {
            let damaged = damage(&text, &mut random);
            if let Ok(module) = parse_module(&damaged) {
                accepted += 1;
                let printed = print_module(&module);
                let again = parse_module(&printed)
                    .unwrap_or_else(|error| panic!("{error}\n{damaged}\n\n{printed}"));
                assert_eq!(print_module(&again), printed);
            }
        }
    }
    assert!(accepted > 0, "some damage is harmless");
}

#[test]
fn truncated_texts_do_no_harm() {
    let text = print_module(&Generator::new(7).module());
    for (end, _) in text.char_indices().take(4000) {
        let _ = parse_module(&text[..end]);
        let _ = parse_module(&text[end..]);
    }
}

#[test]
fn noise_does_no_harm() {
    let mut random = Random(5);
    for _ in 0..20_000 {
        let length = random.below(30);
        let noise: String = (0..length)
            .map(|_| FRAGMENTS[random.below(FRAGMENTS.len())])
            .collect();
        let _ = parse_module(&noise);
        let _ = parse_module(&format!("func @f(%a: i64, %p: ptr) -> (f64) {{ {noise} }}"));
    }
}

/// Malformed operations print, since messages show them.
#[test]
fn malformed_functions_print() {
    let missing = Value::new(12345);
    for &opcode in Opcode::ALL {
        for operands in [vec![], vec![missing], vec![missing; 4]] {
            for regions in [vec![], vec![Region::new(99)], vec![Region::new(0)]] {
                for payload in [Payload::None, Payload::Callee(FunctionId::new(77))] {
                    let mut module = Module::new();
                    let mut function = Function::define("f", vec![], vec![]);
                    let op = function.new_op(
                        OpData {
                            opcode,
                            operands: operands.clone().into(),
                            results: Default::default(),
                            regions: regions.clone().into(),
                            payload,
                            flags: Flags::NONE,
                            location: Some(Location::new(3)),
                        },
                        &[],
                    );
                    let body = function.body();
                    function.regions[body].ops.push(op);
                    function.regions[body].ops.push(Op::new(555));
                    let held_by_itself = regions == [body];
                    let line = print_op(&module, &function, op);
                    assert!(line.starts_with(opcode.name()), "{line}");
                    let id = module.functions.push(function);
                    if !held_by_itself {
                        assert!(print_function(&module, id).contains(opcode.name()));
                    }
                }
            }
        }
    }
}

#[test]
fn deep_nesting_reads_back() {
    let nested = |depth: usize| {
        let mut text = String::from("func @f(%c: i1) {\n");
        for _ in 0..depth {
            text.push_str("if %c {\n");
        }
        for _ in 0..depth {
            text.push_str("yield }\n");
        }
        text.push_str("return }\n");
        text
    };
    let module = parse_module(&nested(1000)).unwrap();
    let printed = print_module(&module);
    assert_eq!(print_module(&parse_module(&printed).unwrap()), printed);
    let error = parse_module(&nested(1001)).unwrap_err();
    assert_eq!(
        error.message,
        "regions are nested more than 1000 levels deep"
    );
    assert!(parse_module(&nested(200_000)).is_err());
    let layouts = format!("declare @f(ptr layout {})", "[ptr ".repeat(100_000));
    assert!(parse_module(&layouts).is_err());
}

#[test]
fn large_functions_with_one_name_for_all_come_back() {
    let mut module = Module::new();
    let mut function = Function::define("f", vec![Type::F64.into()], vec![Type::F64]);
    let mut last = function.arguments()[0];
    let mut b = Builder::at_body(&mut function);
    for index in 0..100_000 {
        let constant = b.float(Type::F64, f64::from(index) * 0.1);
        last = b.binary(Opcode::Fadd, last, constant);
        // All of the same name, the hardest case for making them unique.
        b.function.set_name(last, "x");
    }
    b.ret(&[last]);
    module.functions.push(function);

    let text = print_module(&module);
    let parsed = parse_module(&text).unwrap();
    assert_eq!(print_module(&parsed), text);
}

// ---- damage

const FRAGMENTS: &[&str] = &[
    "%",
    "@",
    "%a",
    "@f",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ",",
    ":",
    "=",
    "*",
    ";",
    "\n",
    " ",
    "->",
    "..=",
    "-",
    "0",
    "1.5",
    "1e999",
    "-7",
    "0x",
    "0xff",
    "\"",
    "\\u{",
    "x\"",
    "x\"0f\"",
    "f64",
    "i64",
    "i0",
    "i999",
    "ptr",
    "<4 x f64>",
    "<0 x i1>",
    "fadd",
    "load",
    "store",
    "if",
    "else",
    "for",
    "loop",
    "with",
    "switch",
    "case",
    "default",
    "yield",
    "return",
    "again",
    "call",
    "trap",
    "loc(",
    "range",
    "align",
    "fast",
    "func",
    "declare",
    "global",
    "rule",
    "file",
    "to",
    "step",
    "splat(",
    "undef",
    "null",
    "inf",
    "nan",
    "é",
    "'",
    "$",
    "layout",
    "memory(",
    "shuffle",
];

fn damage(text: &str, random: &mut Random) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..1 + random.below(3) {
        let at = random.below(characters.len());
        let until = (at + 1 + random.below(20)).min(characters.len());
        match random.below(5) {
            0 => drop(characters.drain(at..until)),
            1 => {
                let fragment = FRAGMENTS[random.below(FRAGMENTS.len())];
                characters.splice(at..at, fragment.chars());
            }
            2 => {
                let copied: Vec<char> = characters[at..until].to_vec();
                characters.splice(at..at, copied);
            }
            3 => {
                let other = random.below(characters.len());
                characters.swap(at, other);
            }
            _ => {
                let fragment = FRAGMENTS[random.below(FRAGMENTS.len())];
                characters.splice(at..until, fragment.chars());
            }
        }
    }
    characters.into_iter().collect()
}

// ---- random modules

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// Makes modules that are well-typed as far as the text form cares; most of them would never run.
struct Generator {
    random: Random,
    module: Module,
    signatures: Vec<(Vec<Type>, Vec<Type>)>,
    globals: usize,
    function: Function,
    /// The values that the open regions see.
    visible: Vec<Value>,
    next_name: u32,
}

const FUNCTIONS: usize = 5;

impl Generator {
    fn new(seed: u64) -> Generator {
        Generator {
            random: Random(seed),
            module: Module::new(),
            signatures: Vec::new(),
            globals: 0,
            function: Function::declare("", vec![], vec![]),
            visible: Vec::new(),
            next_name: 0,
        }
    }

    fn module(mut self) -> Module {
        for file in 0..self.random.below(3) {
            self.module.files.push(format!("src/\"{file}\"\\ü\n.rs"));
        }
        self.globals = self.random.below(4);
        for index in 0..self.globals {
            let global = self.global(index);
            self.module.globals.push(global);
        }
        for _ in 0..FUNCTIONS {
            let params = self.types(3);
            let results = self.types(3);
            self.signatures.push((params, results));
        }
        for index in 0..FUNCTIONS {
            self.make_function(index);
            let function =
                std::mem::replace(&mut self.function, Function::declare("", vec![], vec![]));
            self.module.functions.push(function);
        }
        for index in 0..FUNCTIONS {
            if self.random.chance(3) {
                let rule = Rule {
                    forward: self.random.chance(2).then(|| FunctionId::new(0)),
                    augment: self.random.chance(2).then(|| FunctionId::new(1)),
                    reverse: self.random.chance(2).then(|| FunctionId::new(2)),
                };
                self.module.rules.insert(FunctionId::new(index), rule);
            }
        }
        self.module
    }

    fn global(&mut self, index: usize) -> Global {
        let bytes = self.random.below(6);
        let relocations = (0..self.random.below(3))
            .map(|place| (8 * place as u64, self.symbol()))
            .collect();
        Global {
            name: ["data", "a b", "", "\"\\\n"][index].to_owned(),
            size: self.random.next(),
            align: self.alignment(),
            constant: self.random.chance(2),
            bytes: (!self.random.chance(4)).then(|| (0..bytes as u8).map(|n| n * 51).collect()),
            relocations,
            inactive: self.random.chance(2),
            shared: self.random.chance(2),
            thread_local: self.random.chance(2),
            parts: (1..self.random.below(3))
                .map(|part| 8 * part as u64)
                .collect(),
            layout: self.random.chance(2).then(|| self.layout(0)),
        }
    }

    fn symbol(&mut self) -> Symbol {
        if self.globals > 0 && self.random.chance(2) {
            Symbol::Global(GlobalId::new(self.random.below(self.globals)))
        } else {
            Symbol::Function(FunctionId::new(self.random.below(FUNCTIONS)))
        }
    }

    fn layout(&mut self, depth: usize) -> Layout {
        let count = self.random.below(4);
        let mut offset = 0;
        let mut fields = Vec::new();
        for _ in 0..count {
            let scalar = self.scalar();
            let nested = scalar == Scalar::Ptr && depth < 3 && self.random.chance(2);
            fields.push(Field {
                offset,
                scalar,
                pointee: nested.then(|| Box::new(self.layout(depth + 1))),
            });
            offset += scalar.bytes() * (1 + self.random.below(2) as u64);
        }
        Layout {
            fields,
            stride: offset,
        }
    }

    fn alignment(&mut self) -> Alignment {
        Alignment::new(1 << self.random.below(64)).unwrap()
    }

    fn range(&mut self) -> Range {
        Range {
            min: self.random.pick(&[i128::MIN, -1, 0, i128::from(i64::MIN)]),
            max: self.random.pick(&[i128::MAX, 0, 100]),
        }
    }

    fn scalar(&mut self) -> Scalar {
        match self.random.below(4) {
            0 => Scalar::Ptr,
            1 => self.float(),
            _ => self.int(),
        }
    }

    fn int(&mut self) -> Scalar {
        Scalar::Int(self.random.pick(&[1, 3, 8, 16, 32, 64, 64, 127, 128]))
    }

    fn float(&mut self) -> Scalar {
        self.random
            .pick(&[Scalar::F16, Scalar::Bf16, Scalar::F32, Scalar::F64])
    }

    fn shaped(&mut self, scalar: Scalar) -> Type {
        if self.random.chance(4) {
            Type::vector_of(scalar, self.random.pick(&[1, 2, 4]))
        } else {
            Type::scalar_of(scalar)
        }
    }

    fn ty(&mut self) -> Type {
        let scalar = self.scalar();
        self.shaped(scalar)
    }

    fn types(&mut self, limit: usize) -> Vec<Type> {
        (0..self.random.below(limit + 1))
            .map(|_| self.ty())
            .collect()
    }

    fn make_function(&mut self, index: usize) {
        let (params, results) = self.signatures[index].clone();
        let params = params
            .into_iter()
            .map(|ty| Param {
                ty,
                facts: ParamFacts {
                    noalias: self.random.chance(2),
                    readonly: self.random.chance(2),
                    writeonly: self.random.chance(2),
                    nocapture: self.random.chance(2),
                    discarded: self.random.chance(2),
                    align: self.alignment(),
                    range: self.random.chance(2).then(|| self.range()),
                    layout: self.random.chance(2).then(|| self.layout(0)),
                },
            })
            .collect();
        let facts = FunctionFacts {
            memory: self.random.pick(&[
                MemoryEffect::None,
                MemoryEffect::Read,
                MemoryEffect::Args,
                MemoryEffect::Any,
            ]),
            noreturn: self.random.chance(2),
            willreturn: self.random.chance(2),
            inactive: self.random.chance(2),
            writes_constants: self.random.chance(2),
            noinline: self.random.chance(2),
            level: self.random.pick(&[
                None,
                Some(ProcessorLevel::V2),
                Some(ProcessorLevel::V3),
                Some(ProcessorLevel::V4),
            ]),
        };
        let name = ["main", "_ZN4core$LT$x.y", "core::f<T>", "7", "x'"][index];
        let declared = self.random.chance(4);
        self.function = if declared {
            Function::declare(name, params, results)
        } else {
            Function::define(name, params, results)
        };
        self.function.facts = facts;
        self.visible.clear();
        if let Some(body) = self.function.body {
            for argument in self.function.arguments().to_vec() {
                self.decorate(argument);
                self.visible.push(argument);
            }
            let results = self.function.results.clone();
            self.fill_region(body, Opcode::Return, &results, 0);
        }
    }

    /// Gives a value a name and a range, or not.
    fn decorate(&mut self, value: Value) {
        if self.random.chance(2) {
            let base = self.random.pick(&["x", "y'", "long.name", "ä b", "", "1x"]);
            self.next_name += 1;
            self.function
                .set_name(value, format!("{base}_{}", self.next_name));
        }
        if self.random.chance(4) {
            self.function.values[value].range = Some(self.range());
        }
    }

    fn fill_region(&mut self, region: Region, terminator: Opcode, types: &[Type], depth: usize) {
        let outside = self.visible.len();
        for _ in 0..self.random.below(if depth == 0 { 40 } else { 6 }) {
            let opcode = self.random.pick(Opcode::ALL);
            match opcode.form() {
                Form::Terminator => {}
                Form::Structured if depth < 4 => self.structured(region, opcode, depth),
                Form::Structured => {}
                _ => self.plain(region, opcode),
            }
        }
        if self.random.chance(16) {
            let callee = self.random.below(FUNCTIONS);
            let params = self.signatures[callee].0.clone();
            let operands: Vec<Value> = params.into_iter().map(|ty| self.operand(ty)).collect();
            let payload = Payload::Callee(FunctionId::new(callee));
            self.push(region, Opcode::Trap, &operands, payload, &[]);
        } else if self.random.chance(8) {
            let message = self.random.pick(&["", "index out of bounds", "\"\t\u{1}"]);
            self.push(
                region,
                Opcode::Trap,
                &[],
                Payload::Message(message.into()),
                &[],
            );
        } else {
            let mut operands: Vec<Value> = Vec::new();
            if terminator == Opcode::Again {
                operands.push(self.operand(Type::I1));
            }
            operands.extend(types.iter().map(|&ty| self.operand(ty)));
            self.push(region, terminator, &operands, Payload::None, &[]);
        }
        self.visible.truncate(outside);
    }

    fn structured(&mut self, region: Region, opcode: Opcode, depth: usize) {
        let mut operands: Vec<Value> = Vec::new();
        let mut arguments: Vec<Type> = Vec::new();
        let results = self.types(2);
        let mut payload = Payload::None;
        let mut regions = 1;
        match opcode {
            Opcode::If => {
                operands.push(self.operand(Type::I1));
                regions = 2;
            }
            Opcode::Switch => {
                let ty = Type::scalar_of(self.int());
                operands.push(self.operand(ty));
                let cases: Vec<Box<[i128]>> = (0..self.random.below(4))
                    .map(|case| {
                        (0..self.random.below(3))
                            .map(|value| 3 * case as i128 - value as i128)
                            .collect()
                    })
                    .collect();
                regions = cases.len() + 1;
                payload = Payload::Cases(cases.into());
            }
            _ => {
                if opcode == Opcode::For {
                    let counter = Type::scalar_of(self.int());
                    arguments.push(counter);
                    for _ in 0..3 {
                        operands.push(self.operand(counter));
                    }
                }
                for &ty in &results {
                    arguments.push(ty);
                    operands.push(self.operand(ty));
                }
            }
        }
        let visible = self.visible.len();
        let op = self.push(region, opcode, &operands, payload, &results);
        let defined = self.visible.split_off(visible);
        for _ in 0..regions {
            let inner = self.function.new_region(&arguments);
            self.function.ops[op].regions.push(inner);
            let outside = self.visible.len();
            for argument in self.function.regions[inner].args.clone() {
                self.decorate(argument);
                self.visible.push(argument);
            }
            let terminator = match opcode {
                Opcode::Loop => Opcode::Again,
                _ => Opcode::Yield,
            };
            self.fill_region(inner, terminator, &results, depth + 1);
            self.visible.truncate(outside);
        }
        self.visible.extend(defined);
    }

    fn plain(&mut self, region: Region, opcode: Opcode) {
        let bit = |ty: Type| ty.with_scalar(Scalar::Int(1));
        let exponent = |ty: Type| ty.with_scalar(Scalar::Int(32));
        let float = self.float();
        let float = self.shaped(float);
        let int = self.int();
        let int = self.shaped(int);
        let any = self.ty();
        let vector = Type::vector_of(any.scalar(), self.random.pick(&[1, 3, 4]));
        let align = Payload::Align(self.alignment());
        let family: Box<str> = self.random.pick(&["", "rust", "a \"b\""]).into();
        let (operands, payload, results): (Vec<Type>, Payload, Vec<Type>) = match opcode.form() {
            Form::IntUnary => (vec![int], Payload::None, vec![int]),
            Form::IntBinary => (vec![int; 2], Payload::None, vec![int]),
            Form::FloatUnary => (vec![float], Payload::None, vec![float]),
            Form::FloatBinary => (vec![float; 2], Payload::None, vec![float]),
            Form::FloatTernary => (vec![float; 3], Payload::None, vec![float]),
            Form::FloatAndInt => (vec![float, exponent(float)], Payload::None, vec![float]),
            Form::FloatToExponent => (vec![float], Payload::None, vec![exponent(float)]),
            Form::FloatSplit => (vec![float], Payload::None, vec![float, exponent(float)]),
            Form::FloatPair => (vec![float], Payload::None, vec![float, float]),
            Form::IntCompare => {
                let predicate = Payload::IntPredicate(self.random.pick(IntPredicate::ALL));
                (vec![int; 2], predicate, vec![bit(int)])
            }
            Form::FloatCompare => {
                let predicate = Payload::FloatPredicate(self.random.pick(FloatPredicate::ALL));
                (vec![float; 2], predicate, vec![bit(float)])
            }
            Form::Cast => (vec![any], Payload::None, vec![self.ty()]),
            _ => match opcode {
                Opcode::Select => {
                    let condition = self.random.pick(&[Type::I1, bit(any)]);
                    (vec![condition, any, any], Payload::None, vec![any])
                }
                Opcode::Splat => (vec![vector.lane_type()], Payload::None, vec![vector]),
                Opcode::Extract => (
                    vec![vector, Type::I64],
                    Payload::None,
                    vec![vector.lane_type()],
                ),
                Opcode::Insert => (
                    vec![vector, vector.lane_type(), Type::I64],
                    Payload::None,
                    vec![vector],
                ),
                Opcode::Shuffle => {
                    let count = 1 + self.random.below(5);
                    let lanes: Vec<u16> = (0..count).map(|_| self.random.next() as u16).collect();
                    let result = Type::vector_of(vector.scalar(), count as u16);
                    (vec![vector; 2], Payload::Lanes(lanes.into()), vec![result])
                }
                Opcode::ReduceFadd => (vec![vector], Payload::None, vec![vector.lane_type()]),
                Opcode::Load => (vec![Type::PTR], align, vec![any]),
                Opcode::Store => (vec![any, Type::PTR], align, vec![]),
                Opcode::AtomicAdd => (vec![Type::PTR, any], align, vec![any]),
                Opcode::Offset => {
                    let scale = Payload::Scale(self.random.pick(&[1, 8, -4, i64::MIN, 0]));
                    (vec![Type::PTR, Type::I64], scale, vec![Type::PTR])
                }
                Opcode::Exclusive => (vec![Type::PTR, Type::I64], Payload::None, vec![Type::PTR]),
                Opcode::Stack => (vec![Type::I64], align, vec![Type::PTR]),
                Opcode::Alloc => {
                    let payload = Payload::Alloc {
                        align: self.alignment(),
                        zeroed: self.random.chance(2),
                        family,
                    };
                    (vec![Type::I64], payload, vec![Type::PTR])
                }
                Opcode::Free => {
                    let align = self.alignment();
                    let operands = match self.random.chance(2) {
                        true => vec![Type::PTR, Type::I64],
                        false => vec![Type::PTR],
                    };
                    (operands, Payload::Free { align, family }, vec![])
                }
                Opcode::Copy | Opcode::Move => {
                    (vec![Type::PTR, Type::PTR, Type::I64], align, vec![])
                }
                Opcode::Fill => (vec![Type::PTR, Type::I8, Type::I64], align, vec![]),
                Opcode::Contract => {
                    let count = self.random.below(4);
                    let indices: Vec<IndexClass> = (0..count)
                        .map(|_| self.random.pick(&IndexClass::ALL))
                        .collect();
                    let extents: usize = indices.iter().map(|class| 1 + class.strides()).sum();
                    let mut operands = vec![Type::PTR; 3];
                    operands.push(float);
                    operands.extend(vec![Type::I64; extents]);
                    let payload = Payload::Contract {
                        align: self.alignment(),
                        add: self.random.chance(2),
                        indices: indices.into(),
                    };
                    (operands, payload, vec![])
                }
                Opcode::Call => {
                    let callee = self.random.below(FUNCTIONS);
                    let (params, results) = self.signatures[callee].clone();
                    (params, Payload::Callee(FunctionId::new(callee)), results)
                }
                Opcode::CallIndirect => {
                    let mut operands = vec![Type::PTR];
                    operands.extend(self.types(3));
                    let results = self.types(2);
                    (operands, Payload::Results(results.clone().into()), results)
                }
                other => panic!("how to make `{other}` is not known"),
            },
        };
        let operands: Vec<Value> = operands.into_iter().map(|ty| self.operand(ty)).collect();
        self.push(region, opcode, &operands, payload, &results);
    }

    fn push(
        &mut self,
        region: Region,
        opcode: Opcode,
        operands: &[Value],
        payload: Payload,
        results: &[Type],
    ) -> Op {
        let flags = match self.random.below(4) {
            0 => Flags::FAST,
            1 => Flags::NAMES
                .iter()
                .filter(|_| self.random.chance(3))
                .fold(Flags::NONE, |all, (flag, _)| all.union(*flag)),
            _ => Flags::NONE,
        };
        let location = self.random.chance(4).then(|| self.location());
        let op = self.function.new_op(
            OpData {
                opcode,
                operands: operands.iter().copied().collect(),
                results: Default::default(),
                regions: Default::default(),
                payload,
                flags,
                location,
            },
            results,
        );
        self.function.regions[region].ops.push(op);
        for result in self.function.ops[op].results.clone() {
            self.decorate(result);
            self.visible.push(result);
        }
        op
    }

    fn location(&mut self) -> Location {
        let mut location = None;
        for _ in 0..1 + self.random.below(3) {
            let data = LocationData {
                file: self.random.below(2) as u32,
                line: self.random.below(3) as u32,
                column: self.random.next() as u32,
                inlined_at: location,
            };
            location = Some(self.module.location(data));
        }
        location.unwrap()
    }

    fn operand(&mut self, ty: Type) -> Value {
        let fitting: Vec<Value> = self
            .visible
            .iter()
            .copied()
            .filter(|&value| self.function.ty(value) == ty)
            .collect();
        if !fitting.is_empty() && !self.random.chance(3) {
            return self.random.pick(&fitting);
        }
        let scalar = ty.scalar();
        let constant = match self.random.below(5) {
            0 => Constant::Undef,
            1 if scalar == Scalar::Ptr => match self.symbol() {
                Symbol::Function(function) => Constant::Function(function),
                Symbol::Global(global) => Constant::Global(global),
            },
            2 if ty.is_vector() => {
                Constant::Lanes((0..ty.lanes()).map(|_| self.bits(scalar)).collect())
            }
            _ => Constant::Bits(self.bits(scalar)),
        };
        self.function.constant(ty, constant)
    }

    fn bits(&mut self, scalar: Scalar) -> u128 {
        let all = ones(scalar.bits());
        match self.random.below(5) {
            0 => 0,
            1 => all,
            2 => 1 << (scalar.bits() - 1),
            3 => u128::from(self.random.next() % 100) & all,
            _ => self.random.wide() & all,
        }
    }
}

// ---- structural equality

fn assert_same_module(a: &Module, b: &Module) {
    assert_eq!(a.files, b.files);
    let globals = |module: &Module| module.globals.values().cloned().collect::<Vec<_>>();
    assert_eq!(globals(a), globals(b));
    assert_eq!(a.rules, b.rules);
    assert_eq!(a.functions.len(), b.functions.len());
    for (x, y) in a.functions.values().zip(b.functions.values()) {
        assert_eq!(x.name, y.name);
        assert_eq!(x.params, y.params);
        assert_eq!(x.results, y.results);
        assert_eq!(x.facts, y.facts);
        assert_eq!(x.body.is_some(), y.body.is_some());
        if let (Some(first), Some(second)) = (x.body, y.body) {
            let mut comparison = Comparison {
                modules: (a, b),
                functions: (x, y),
                values: HashMap::new(),
            };
            comparison.regions(first, second);
        }
    }
}

struct Comparison<'a> {
    modules: (&'a Module, &'a Module),
    functions: (&'a Function, &'a Function),
    values: HashMap<Value, Value>,
}

impl Comparison<'_> {
    fn regions(&mut self, a: Region, b: Region) {
        let (a, b) = (&self.functions.0.regions[a], &self.functions.1.regions[b]);
        self.definitions(&a.args, &b.args);
        assert_eq!(a.ops.len(), b.ops.len());
        for (&a, &b) in a.ops.iter().zip(&b.ops) {
            let (a, b) = (&self.functions.0.ops[a], &self.functions.1.ops[b]);
            assert_eq!(a.opcode, b.opcode);
            assert_eq!(a.payload, b.payload);
            assert_eq!(a.flags, b.flags);
            self.locations(a.location, b.location);
            assert_eq!(a.operands.len(), b.operands.len());
            for (&a, &b) in a.operands.iter().zip(&b.operands) {
                self.uses(a, b);
            }
            assert_eq!(a.regions.len(), b.regions.len());
            for (&a, &b) in a.regions.iter().zip(&b.regions) {
                self.regions(a, b);
            }
            self.definitions(&a.results, &b.results);
        }
    }

    fn definitions(&mut self, a: &[Value], b: &[Value]) {
        assert_eq!(a.len(), b.len());
        for (&a, &b) in a.iter().zip(b) {
            let (x, y) = (&self.functions.0.values[a], &self.functions.1.values[b]);
            assert_eq!(x.ty, y.ty);
            assert_eq!(x.name, y.name);
            assert_eq!(x.range, y.range);
            self.values.insert(a, b);
        }
    }

    fn uses(&self, a: Value, b: Value) {
        let (x, y) = (&self.functions.0.values[a], &self.functions.1.values[b]);
        assert_eq!(x.ty, y.ty);
        match &x.def {
            ValueDef::Constant(_) => assert_eq!(x.def, y.def),
            _ => assert_eq!(self.values.get(&a), Some(&b)),
        }
    }

    fn locations(&self, a: Option<Location>, b: Option<Location>) {
        assert_eq!(a.is_some(), b.is_some());
        if let (Some(a), Some(b)) = (a, b) {
            let (a, b) = (&self.modules.0.locations[a], &self.modules.1.locations[b]);
            assert_eq!((a.file, a.line, a.column), (b.file, b.line, b.column));
            self.locations(a.inlined_at, b.inlined_at);
        }
    }
}
