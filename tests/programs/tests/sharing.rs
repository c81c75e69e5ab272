//! Values that pass through locks, cells and statics on their way.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, OnceLock, RwLock};

static SQUARE: Mutex<f64> = Mutex::new(0.0);
static PREVIOUS: Mutex<f64> = Mutex::new(1.0);
static SCRATCH: Mutex<[f64; 8]> = Mutex::new([0.0; 8]);
static CONFIGURATION: OnceLock<Configuration> = OnceLock::new();

struct Configuration {
    weights: Vec<f64>,
    factor: usize,
}

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
    *SQUARE.lock().unwrap() = x * x;
    *SQUARE.lock().unwrap() * x
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

/// Memory inside a lock is like any other; in debug builds too, where the lock's functions are not inlined.
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

#[autodiff_reverse(dconfigured, Duplicated, Active)]
fn configured(x: &[f64]) -> f64 {
    let configuration = CONFIGURATION.get().unwrap();
    let pairs = x.iter().zip(&configuration.weights);
    pairs.map(|(x, w)| w * x * x).sum::<f64>() * configuration.factor as f64
}

/// Values that the program has set before are constant: they have no shadow, and need none.
#[test]
fn a_configuration_is_only_read() {
    let set = CONFIGURATION.set(Configuration {
        weights: vec![1.0, 2.0, 3.0],
        factor: 2,
    });
    assert!(set.is_ok());
    let (x, mut gradient) = ([1.5, 0.5, 2.0], [0.0; 3]);
    let value = dconfigured(&x, &mut gradient, 1.0);
    assert_eq!(value, configured(&x));
    assert_eq!(gradient, [6.0, 4.0, 24.0]);
}

#[autodiff_reverse(dstep, Active, Active)]
#[autodiff_forward(bstep, Dual, Dual)]
fn step(x: f64) -> f64 {
    let mut previous = PREVIOUS.lock().unwrap();
    let difference = x - *previous;
    *previous = x;
    difference * difference
}

/// Each derivative starts with the current contents of the static as a constant, whatever the previous one left there.
#[test]
fn statics_carry_no_derivatives_from_call_to_call() {
    assert_eq!(dstep(3.0, 1.0), (4.0, 4.0));
    assert_eq!(dstep(5.0, 1.0), (4.0, 4.0));
    assert_eq!(dstep(5.0, 1.0), (0.0, 0.0));
    assert_eq!(bstep(6.0, 1.0), (1.0, 2.0));
    assert_eq!(bstep(9.0, 1.0), (9.0, 6.0));
}

#[autodiff_reverse(dchain, Duplicated, Active)]
fn chain(x: &[f64]) -> f64 {
    let mut sum = 0.0;
    for _ in 0..4 {
        let mut scratch = SCRATCH.lock().unwrap();
        for (to, x) in scratch.iter_mut().zip(x) {
            *to = x * x;
        }
        for i in 1..x.len() {
            scratch[i] *= scratch[i - 1];
        }
        sum += scratch[x.len() - 1];
    }
    sum
}

/// The shadow of a static belongs to the thread: other threads may run the same derivative.
#[test]
fn derivatives_on_several_threads_share_nothing() {
    let x: Vec<f64> = (0..8).map(|i| 0.9 + 0.02 * f64::from(i)).collect();
    let gradient = || {
        let mut gradient = vec![0.0; x.len()];
        dchain(&x, &mut gradient, 1.0);
        gradient
    };
    let expected = gradient();
    assert!(expected.iter().all(|g| *g > 1.0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5000 {
                    assert_eq!(gradient(), expected);
                }
            });
        }
    });
}
