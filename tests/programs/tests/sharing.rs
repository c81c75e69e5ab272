//! Values that pass through locks, cells and statics on their way.

use ferrozyme::autodiff_reverse;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, RwLock};

static STACK: Mutex<Vec<f64>> = Mutex::new(Vec::new());

thread_local! {
    static CELL: RefCell<f64> = const { RefCell::new(0.0) };
}

#[autodiff_reverse(dmutex, Active, Active)]
fn local_mutex(x: f64) -> f64 {
    let product = Mutex::new(1.0);
    *product.lock().unwrap() *= x * x;
    *product.lock().unwrap() * x
}

#[autodiff_reverse(drwlock, Active, Active)]
fn local_rwlock(x: f64) -> f64 {
    let product = RwLock::new(1.0);
    *product.write().unwrap() *= x * x;
    *product.read().unwrap() * x
}

#[autodiff_reverse(dstatic, Active, Active)]
fn static_mutex(x: f64) -> f64 {
    STACK.lock().unwrap().push(x * x);
    let square = STACK.lock().unwrap().pop().unwrap();
    square * x
}

#[autodiff_reverse(dcell, Active, Active)]
fn thread_local(x: f64) -> f64 {
    CELL.with(|cell| *cell.borrow_mut() = x * x);
    CELL.with(|cell| *cell.borrow()) * x
}

#[autodiff_reverse(dshared, Duplicated, Active)]
fn shared_vector(x: &[f64]) -> f64 {
    let squares = Arc::new(Mutex::new(vec![0.0]));
    for value in x {
        let handle = squares.clone();
        handle.lock().unwrap().push(value * value);
    }
    squares.lock().unwrap().iter().sum()
}

/// What is inside a lock is memory like any other; in debug builds too, where its functions are not inlined.
#[test]
fn cubes_by_way_of_locks() {
    for derivative in [dmutex, drwlock, dstatic, dcell] {
        let (value, gradient) = derivative(3.0, 1.0);
        assert_eq!((value, gradient), (27.0, 27.0));
    }
    assert_eq!(local_mutex(2.0), 8.0);
    assert_eq!(local_rwlock(2.0), 8.0);
    assert_eq!(static_mutex(2.0), 8.0);
    assert_eq!(thread_local(2.0), 8.0);
}

#[test]
fn a_vector_behind_a_shared_lock() {
    let (x, mut gradient) = ([0.7, 0.31, 1.2], [0.0; 3]);
    let value = dshared(&x, &mut gradient, 1.0);
    assert_eq!(value, shared_vector(&x));
    assert_eq!(gradient, [1.4, 0.62, 2.4]);
}
