//! Layouts as text: size, then for each field its kind, offset and contents.

use std::cell::Cell;
use std::marker::PhantomData;
use std::rc::Rc;

use crate::Differentiable;
use crate::interface::{Field, Layout, Probe, Unknown};

/// Follows pointers to this depth.
fn text_of(layout: *const Layout, depth: usize) -> String {
    // SAFETY: layouts are constants.
    let Some(layout) = (unsafe { layout.as_ref() }) else {
        return "unknown".to_owned();
    };
    let fields: Vec<String> = (0..layout.field_count)
        // SAFETY: a layout points to as many fields as it says.
        .map(|index| field_text(unsafe { &*layout.fields.add(index) }, depth))
        .collect();
    format!("{}({})", layout.size, fields.join(" "))
}

fn field_text(field: &Field, depth: usize) -> String {
    let kind = match field.kind {
        0 => format!("unknown{}", field.bytes),
        1 => format!("i{}", field.bytes * 8),
        2 => "f32".to_owned(),
        3 => "f64".to_owned(),
        4 => match field.pointee {
            Some(pointee) if depth > 0 => format!("&{}", text_of(pointee(), depth - 1)),
            Some(_) => "&…".to_owned(),
            None => "&unknown".to_owned(),
        },
        5 => text_of(field.nested, depth),
        kind => panic!("kind {kind}"),
    };
    let count = match field.count {
        1 => String::new(),
        count => format!("*{count}/{}", field.stride),
    };
    format!("{}:{kind}{count}", field.offset)
}

#[track_caller]
fn check<T: ?Sized + Differentiable>(expected: &str) {
    assert_eq!(text_of(T::LAYOUT, 2), expected);
}

#[test]
fn layouts_of_values() {
    check::<f64>("8(0:f64)");
    check::<usize>("8(0:i64)");
    check::<()>("0()");
    check::<PhantomData<f64>>("0()");
    check::<[f32; 3]>("12(0:4(0:f32)*3/4)");
    check::<(f64, u8)>("16(0:8(0:f64) 8:1(0:i8))");
    check::<Cell<f32>>("4(0:f32)");
    check::<Option<f64>>("16(0:i64 8:8(0:f64))");
    check::<Option<f32>>("8(0:i32 4:4(0:f32))");
    check::<Option<(f64, bool)>>("16(0:16(0:8(0:f64) 8:1(0:i8)))");
}

#[test]
fn layouts_of_pointers() {
    check::<&f64>("8(0:&8(0:f64))");
    check::<&mut [f64]>("16(0:&8(0:f64) 8:i64)");
    check::<&[[f64; 3]; 2]>("8(0:&8(0:f64))");
    check::<*const &f32>("8(0:&8(0:&4(0:f32)))");
    check::<Box<[u8]>>("16(0:&1(0:i8) 8:i64)");
    check::<Option<Box<f64>>>("8(0:8(0:&8(0:f64)))");
    check::<&str>("16(0:&1(0:i8) 8:i64)");
    check::<Rc<f64>>("8(0:&unknown)");
}

#[test]
fn probes_answer_for_any_type() {
    struct Foreign;
    assert_eq!(text_of(Probe::<&f64>::LAYOUT, 1), "8(0:&8(0:f64))");
    assert!(Probe::<&Foreign>::LAYOUT.is_null());
    assert!(Probe::<dyn Fn(f64) -> f64>::LAYOUT.is_null());
    const {
        assert!(Probe::<[f64]>::FROZEN);
        assert!(!Probe::<Cell<f64>>::FROZEN && !Probe::<Cell<f64>>::COPY);
        assert!(!Probe::<Foreign>::FROZEN && !Probe::<Foreign>::COPY);
        assert!(Probe::<&Vec<Box<Foreign>>>::HAS_NO_CELLS);
        assert!(!Probe::<Vec<Cell<f64>>>::HAS_NO_CELLS);
        assert!(!Probe::<Rc<Vec<Cell<f64>>>>::HAS_NO_CELLS);
        assert!(!Probe::<&Cell<f64>>::HAS_NO_CELLS && Probe::<&Cell<f64>>::COPY);
        assert!(Probe::<fn(Foreign)>::COPY);
        assert!(Probe::<[fn(Foreign)]>::SLICE_OF_COPY);
        assert!(Probe::<Foreign>::UNPIN && Probe::<[f64]>::UNPIN);
        assert!(!Probe::<std::marker::PhantomPinned>::UNPIN);
        assert!(Probe::<f64>::FLAT && !Probe::<Vec<f64>>::FLAT);
    }
}

#[test]
fn gradients_are_made_of_floats() {
    use crate::interface::layout::can_be_gradient;
    assert!(can_be_gradient(f64::LAYOUT));
    assert!(can_be_gradient(<[(f32, usize); 2]>::LAYOUT));
    assert!(can_be_gradient(std::ptr::null()));
    assert!(!can_be_gradient(usize::LAYOUT));
    assert!(!can_be_gradient(<(f64, &f64)>::LAYOUT));
}

fn generic_probe<T>() -> bool {
    Probe::<&[T]>::LAYOUT.is_null()
}

fn bounded_probe<T: Differentiable>() -> bool {
    Probe::<&[T]>::LAYOUT.is_null()
}

#[test]
fn probes_answer_in_generic_code() {
    assert!(generic_probe::<f64>());
    assert!(!bounded_probe::<f64>());
}

mod derived {
    use super::*;
    use crate::Shadow;

    #[derive(Differentiable)]
    #[allow(dead_code)]
    struct Plain {
        flag: bool,
        value: f64,
        list: Vec<f64>,
    }

    #[derive(Differentiable)]
    #[allow(dead_code)]
    struct Foreign {
        value: f64,
        #[differentiable(inactive)]
        other: std::time::Duration,
        #[differentiable(inactive)]
        name: &'static str,
    }

    #[derive(Differentiable)]
    #[differentiable(no_shadow)]
    struct NoShadow(#[allow(dead_code)] std::time::Duration);

    #[derive(Differentiable, Clone, Copy, PartialEq, Debug)]
    enum Plainest {
        First,
        #[allow(dead_code)]
        Second,
    }

    #[derive(Differentiable, PartialEq, Debug)]
    enum Tree<T> {
        Leaf(T),
        Node {
            left: Box<Tree<T>>,
            right: Option<Box<Tree<T>>>,
        },
    }

    #[derive(Differentiable)]
    #[allow(dead_code)]
    struct List {
        value: f64,
        next: Option<Box<List>>,
        others: Vec<List>,
    }

    #[test]
    fn layouts() {
        assert!(text_of(List::LAYOUT, 1).contains(":8(0:8(0:&40("));
        let text = text_of(Plain::LAYOUT, 1);
        assert!(
            text.contains(":8(0:f64)") && text.contains(":1(0:i8)"),
            "{text}"
        );
        check::<Plainest>("1(0:i8)");
        assert!(text_of(Tree::<f64>::LAYOUT, 1).contains("0:unknown"));
        assert!(text_of(NoShadow::LAYOUT, 1).contains("unknown"));
        const {
            assert!(Plain::FROZEN && !Plain::FLAT);
            assert!(Plainest::FROZEN && Plainest::FLAT);
            assert!(Tree::<f64>::FROZEN && !Tree::<f64>::FLAT);
            assert!(!Tree::<Cell<f64>>::FROZEN);
            // `Duration` is `Copy`, so nothing in it changes behind a shared reference.
            assert!(Foreign::FROZEN);
        }
    }

    #[test]
    fn shadows() {
        let tree = Tree::Node {
            left: Box::new(Tree::Leaf(2.0)),
            right: Some(Box::new(Tree::Leaf(3.0))),
        };
        let shadow = tree.shadow();
        let expected = Tree::Node {
            left: Box::new(Tree::Leaf(0.0)),
            right: Some(Box::new(Tree::Leaf(0.0))),
        };
        assert_eq!(shadow, expected);
        assert!(tree.compare(&shadow).is_ok());
        let other = Tree::Node {
            left: Box::new(Tree::Leaf(0.0)),
            right: None,
        };
        let mismatch = tree.compare(&other).expect_err("another shape");
        assert_eq!(mismatch.path, ".right");
        assert_eq!((&*mismatch.primal, &*mismatch.shadow), ("Some", "None"));
        let mismatch = tree.compare(&Tree::Leaf(0.0)).expect_err("another variant");
        assert_eq!(mismatch.primal, "variant `Node`");
        assert_eq!(Plainest::First.shadow(), Plainest::First);
    }
}
