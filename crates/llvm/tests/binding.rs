//! The binding: reads, builds, changes, compiles.

use ferrozyme_llvm::{
    CodegenLevel, Context, Linkage, LlvmError, Opcode, PassOptions, Place, TargetDescription,
    TargetMachine, ValueKind,
};

const SOURCE: &str = r#"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"
@table = private constant [3 x double] [double 1.0, double 2.0, double 0x7FF8000000000001]
@wide = global i128 -5
@both = global { i32, ptr } { i32 7, ptr getelementptr inbounds (i8, ptr @table, i64 8) }
define double @f(ptr noalias align 8 dereferenceable(16) %p, i64 %n) #0 {
entry:
  %x = load double, ptr %p, align 8, !range !9
  switch i64 %n, label %out [ i64 1, label %one
    i64 -2, label %out ]
one:
  %y = fmul reassoc nsz double %x, 3.0
  br label %out
out:
  %r = phi double [ %x, %entry ], [ %x, %entry ], [ %y, %one ]
  ret double %r
}
attributes #0 = { nounwind "alloc-family"="test" }
!9 = !{}
"#;

#[test]
fn writes_a_summary_beside_the_module() {
    let context = Context::new().unwrap();
    let text = SOURCE.replace(", !range !9", "");
    let module = context.parse_text("test", &text).unwrap();
    let before = module.to_string();
    let bytes = module.to_bitcode_with_summary().unwrap();
    assert_eq!(module.to_string(), before);
    assert!(bytes.len() > module.to_bitcode().len());
    let again = context.parse_bitcode("test", &bytes).unwrap();
    assert_eq!(again.to_string(), before);
}

#[test]
fn reads_what_a_module_says() {
    let context = Context::new().unwrap();
    let module = context
        .parse_text("test", &SOURCE.replace(", !range !9", ""))
        .unwrap();
    module.verify().unwrap();
    let function = module.function("f").unwrap();
    assert!(function.has_attribute(Place::Parameter(0), "noalias"));
    assert_eq!(
        function.attribute_value(Place::Parameter(0), "dereferenceable"),
        Some(16)
    );
    assert_eq!(
        function
            .text_attribute(Place::Function, "alloc-family")
            .as_deref(),
        Some("test")
    );
    let table = module.global("table").unwrap();
    assert_eq!(table.linkage(), Linkage::Private);
    let numbers = table.initialiser().unwrap();
    assert_eq!(numbers.kind(), ValueKind::ConstantDataArray);
    assert_eq!(numbers.raw_bytes().unwrap().len(), 24);
    assert_eq!(numbers.element(1).unwrap().as_float(), Some(2.0));
    assert_eq!(
        numbers.element(2).unwrap().as_float_bits(),
        Some(0x7FF8000000000001)
    );
    assert_eq!(
        module
            .global("wide")
            .unwrap()
            .initialiser()
            .unwrap()
            .as_signed(),
        Some(-5)
    );
    let pointer = module
        .global("both")
        .unwrap()
        .initialiser()
        .unwrap()
        .element(1)
        .unwrap();
    assert_eq!(
        (pointer.kind(), pointer.opcode()),
        (ValueKind::ConstantExpression, Some(Opcode::GetElementPtr))
    );
    assert_eq!(pointer.operand(0), table);
    let switch = function.entry_block().unwrap().terminator().unwrap();
    assert_eq!(
        switch
            .switch_cases()
            .iter()
            .map(|(value, _)| value.as_signed().unwrap())
            .collect::<Vec<_>>(),
        [1, -2]
    );
    let phi = function
        .instructions()
        .find(|instruction| instruction.is(Opcode::Phi))
        .unwrap();
    assert_eq!(phi.incoming().len(), 3);
    assert_eq!(phi.block().unwrap().predecessors().len(), 3);
}

#[test]
fn optimises_and_compiles() {
    let context = Context::new().unwrap();
    let module = context
        .parse_text("test", &SOURCE.replace(", !range !9", ""))
        .unwrap();
    let copy = context
        .parse_bitcode_lazily("copy", &module.to_bitcode())
        .unwrap();
    let target = context.create_module("target");
    target.link(copy).unwrap();
    let machine = TargetMachine::new(&TargetDescription {
        cpu: "native".to_owned(),
        ..TargetDescription::default()
    })
    .unwrap();
    target
        .run_passes("default<O3>", Some(&machine), PassOptions::default())
        .unwrap();
    assert!(
        machine.emit_assembly(target).unwrap().contains("vmulsd")
            || cfg!(not(target_arch = "x86_64"))
    );
    assert!(machine.emit_object(target).unwrap().len() > 100);
}

#[test]
fn reports_what_llvm_refuses() {
    let context = Context::new().unwrap();
    assert!(
        context
            .parse_text("test", "define i32 @f() { ret i64 0 }")
            .unwrap_err()
            .to_string()
            .contains("value doesn't match function result type")
    );
    assert!(context.parse_bitcode("test", b"nonsense").is_err());
    let module = context.create_module("test");
    assert!(
        module
            .run_passes("no-such-pass", None, PassOptions::default())
            .is_err()
    );
    let function = module.add_function("f", context.void().function(&[], false));
    context.append_block(function, "entry");
    assert!(module.verify().is_err());
}

#[test]
fn unknown_toolchains_are_named() {
    let error = ferrozyme_llvm::Toolchain::at(std::path::Path::new("/nowhere")).unwrap_err();
    assert!(error.to_string().contains("/nowhere"), "{error}");
}

#[test]
fn what_passes_leave_malformed_is_an_error() {
    let context = Context::new().unwrap();
    let text = "define double @f(double %x) {\n  ret double %x\n}\n";
    let machine = TargetMachine::new(&TargetDescription::default()).unwrap();
    let parse = || context.parse_text("test", text).unwrap();
    let optimise = |pipeline| {
        ferrozyme_llvm::compile::optimise_checked(
            parse(),
            pipeline,
            &machine,
            PassOptions::default(),
        )
    };
    assert!(optimise("default<O2>").is_ok());
    // A pass of LLVM's that breaks the module on purpose: it is tried again, and given up.
    let broken = optimise("default<O2>,trigger-verifier-error");
    assert!(matches!(broken, Err(LlvmError::Malformed { .. })));
}

/// What debug records say of a terminator belongs to the one that takes its place.
#[test]
fn a_terminator_with_debug_records_is_replaced() {
    let context = Context::new().unwrap();
    let text = r#"
declare void @g()
define void @f(i32 %x) !dbg !3 {
    #dbg_value(i32 %x, !5, !DIExpression(), !6)
  br label %end, !dbg !6
end:
  ret void
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: "f.c", directory: ".")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = distinct !DISubprogram(name: "f", file: !1, line: 1, type: !4, unit: !0, spFlags: DISPFlagDefinition)
!4 = !DISubroutineType(types: !{null})
!5 = !DILocalVariable(name: "x", arg: 1, scope: !3, file: !1, line: 1)
!6 = !DILocation(line: 1, scope: !3)
"#;
    let module = context.parse_text("test", text).unwrap();
    module.verify().unwrap();
    let entry = module.function("f").unwrap().blocks()[0];
    let old = entry.terminator().unwrap();
    let builder = context.builder();
    builder.before(old);
    builder.branch(old.successors()[0]);
    old.erase();
    module.verify().unwrap();
    assert!(module.to_string().contains("#dbg_value"));
}

/// What was deleted is not used any more: each handle of it panics.
mod deleted {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    const TEXT: &str = r#"
@slot = global i64 0
@table = constant [2 x ptr] [ptr @slot, ptr @f]
define i64 @f(i64 %n) {
entry:
  %a = add i64 %n, 0
  %b = mul i64 %a, 3
  br label %out
out:
  ret i64 %b
}
define internal void @unused() {
  ret void
}
"#;

    fn is_refused<R>(use_it: impl FnOnce() -> R) -> bool {
        let Err(panic) = catch_unwind(AssertUnwindSafe(use_it)) else {
            return false;
        };
        let message = panic.downcast_ref::<&str>().copied().map(str::to_owned);
        let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
        assert!(message.unwrap().contains("used after it was deleted"));
        true
    }

    #[test]
    fn instructions_and_blocks() {
        let context = Context::new().unwrap();
        let module = context.parse_text("test", TEXT).unwrap();
        let f = module.function("f").unwrap();
        let [entry, out] = f.blocks()[..] else {
            panic!("two blocks")
        };
        let [a, b, branch] = entry.instructions().collect::<Vec<_>>()[..] else {
            panic!("three instructions")
        };
        let builder = context.builder();
        builder.before(a);
        a.replace_uses_with(f.parameter(0));
        a.erase();
        assert!(is_refused(|| a.kind()));
        assert!(is_refused(|| b.set_operand(0, a)));
        assert!(is_refused(|| builder.unreachable()));
        assert_eq!(b.operand(0), f.parameter(0));
        assert_ne!(a, b, "handles may be compared at any time");
        f.delete_body();
        for gone in [b, branch] {
            assert!(is_refused(|| gone.opcode()));
        }
        assert!(is_refused(|| entry.name()) && is_refused(|| out.name()));
        builder.at_end(context.append_block(f, "again"));
        builder.return_value(f.parameter(0));
        module.verify().unwrap();
    }

    #[test]
    fn a_block_that_is_named_is_not_erased() {
        let context = Context::new().unwrap();
        let module = context.parse_text("test", TEXT).unwrap();
        let f = module.function("f").unwrap();
        let last = f.blocks()[1];
        let erased = catch_unwind(AssertUnwindSafe(|| f.erase_blocks(&[last])));
        assert!(erased.is_err());
        module.verify().unwrap();
    }

    #[test]
    fn by_passes() {
        let context = Context::new().unwrap();
        let module = context.parse_text("test", TEXT).unwrap();
        let (f, unused) = (
            module.function("f").unwrap(),
            module.function("unused").unwrap(),
        );
        let (entry, first) = (f.blocks()[0], f.instructions().next().unwrap());
        let passes = "globaldce,function(instcombine,simplifycfg)";
        module
            .run_passes(passes, None, PassOptions::default())
            .unwrap();
        assert!(is_refused(|| unused.name()) && is_refused(|| first.name()));
        assert_eq!((f.name().as_str(), entry.function()), ("f", f));
        let kept = f.instructions().next().unwrap();
        f.run_passes("instcombine", None, PassOptions::default())
            .unwrap();
        assert!(kept.is(Opcode::Mul));
    }

    #[test]
    fn modules_and_what_is_in_them() {
        let context = Context::new().unwrap();
        let module = context.parse_text("test", TEXT).unwrap();
        let copy = module.duplicate();
        let (f, table) = (copy.function("f").unwrap(), copy.global("table").unwrap());
        let contents = table.initialiser().unwrap();
        let number = context.integer(64).constant(3);
        copy.dispose();
        assert!(is_refused(|| copy.name()) && is_refused(|| f.name()));
        assert!(is_refused(|| table.name()) && is_refused(|| contents.kind()));
        assert_eq!(number.as_signed(), Some(3));
        assert_eq!(module.function("f").unwrap().block_count(), 2);
    }

    #[test]
    fn what_linking_replaces() {
        let context = Context::new().unwrap();
        let source = context.parse_text("source", TEXT).unwrap();
        let text =
            "declare i64 @f(i64)\ndefine i64 @g() {\n  %r = call i64 @f(i64 1)\n  ret i64 %r\n}\n";
        let module = context.parse_text("test", text).unwrap();
        let (f, g) = (module.function("f").unwrap(), module.function("g").unwrap());
        let theirs = source.function("f").unwrap();
        module.link(source).unwrap();
        assert!(is_refused(|| source.name()) && is_refused(|| theirs.name()));
        let linked = module.function("f").unwrap();
        assert!(linked == f || is_refused(|| f.name()));
        assert_eq!(g.instructions().next().unwrap().called(), linked);
    }

    #[test]
    fn constants_that_are_made_anew() {
        let context = Context::new().unwrap();
        let module = context.parse_text("test", TEXT).unwrap();
        let slot = module.global("slot").unwrap();
        let contents = module.global("table").unwrap().initialiser().unwrap();
        slot.replace_uses_with(context.pointer().zero());
        assert!(is_refused(|| contents.kind()));
        slot.erase();
        assert!(is_refused(|| slot.name()));
        module.verify().unwrap();
    }
}

/// One index compared with 0, 1, 2 and 3, as a sum by indices makes it: LLVM 22 joins the comparisons and then has no instruction for their load with AVX-512, which would end the process.
#[test]
fn a_narrow_vector_that_is_read_several_times_is_compiled() {
    let mut text = String::from(
        "target triple = \"x86_64-unknown-linux-gnu\"\ndefine <8 x double> @f(<2 x double> %x, ptr %p) {\n  %index = load <2 x i32>, ptr %p, align 8\n",
    );
    for class in 0..4 {
        text += &format!(
            "  %is{class} = icmp eq <2 x i32> %index, splat (i32 {class})
  %one{class} = select <2 x i1> %is{class}, <2 x double> splat (double 1.0), <2 x double> zeroinitializer
  %some{class} = fadd <2 x double> %one{class}, zeroinitializer
  %sum{class} = fadd <2 x double> %x, %some{class}\n"
        );
    }
    text += "  %low = shufflevector <2 x double> %sum0, <2 x double> %sum1, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %high = shufflevector <2 x double> %sum2, <2 x double> %sum3, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %all = shufflevector <4 x double> %low, <4 x double> %high, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  ret <8 x double> %all\n}\n";
    let context = Context::new().unwrap();
    let module = context.parse_text("test", &text).unwrap();
    let machine = TargetMachine::new(&TargetDescription {
        triple: "x86_64-unknown-linux-gnu".to_owned(),
        cpu: "x86-64-v4".to_owned(),
        level: CodegenLevel::Aggressive,
        ..TargetDescription::default()
    });
    let assembly = machine.unwrap().emit_assembly(module).unwrap();
    assert!(assembly.contains("retq"), "{assembly}");
}
