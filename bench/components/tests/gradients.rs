//! Both backward passes give the same gradients, and the hand-written ones are right.

use ferrozyme_bench_components::cases::{Component, all, small};

/// The largest difference, relative to the largest entry.
fn distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let largest = a.iter().fold(1e-3f32, |largest, x| largest.max(x.abs()));
    let difference = a
        .iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0f32, f32::max);
    assert!(a.iter().chain(b).all(|x| x.is_finite()));
    difference / largest
}

fn gradients_by_hand(component: &mut dyn Component) -> Vec<f32> {
    component.clear();
    component.forward();
    component.seed();
    component.backward_by_hand();
    component.gradients()
}

fn check(component: &mut dyn Component) {
    let expected = gradients_by_hand(component);
    assert!(
        expected.iter().any(|x| *x != 0.0),
        "{}: the gradient vanishes",
        component.name()
    );
    component.clear();
    component.seed();
    component.backward();
    let alone = distance(&expected, &component.gradients());
    assert!(
        alone < 2e-5,
        "{}: backward alone is off by {alone:e}",
        component.name()
    );
    component.clear();
    component.seed();
    component.forward_and_backward();
    let both = distance(&expected, &component.gradients());
    assert!(
        both < 2e-5,
        "{}: forward and backward is off by {both:e}",
        component.name()
    );
}

#[test]
fn small_components() {
    for mut component in small() {
        check(component.as_mut());
    }
}

#[test]
fn components_of_gpt2() {
    for mut component in all() {
        check(component.as_mut());
    }
}

mod by_differences {
    use ferrozyme_bench_components::{
        attention, cross_entropy, gelu, layer_norm, loss, matrix_product, numbers, projection,
    };

    /// Compares ⟨gradient, direction⟩ with a central difference of `objective` in single precision, summed in double.
    fn check(name: &str, x: &[f32], gradient: &[f32], objective: impl Fn(&[f32]) -> f64) {
        let direction = numbers(x.len(), 99);
        let at = |h: f32| {
            let moved: Vec<f32> = x.iter().zip(&direction).map(|(x, v)| x + h * v).collect();
            objective(&moved)
        };
        let h = 4e-3;
        let expected = (at(h) - at(-h)) / f64::from(2.0 * h);
        let found: f64 = gradient
            .iter()
            .zip(&direction)
            .map(|(g, v)| f64::from(g * v))
            .sum();
        let allowed = 2e-3 * expected.abs().max(1.0);
        assert!(
            (found - expected).abs() < allowed,
            "{name}: {found} by hand, {expected} by differences"
        );
    }

    type Forward = fn(&[f32], &[f32], &[f32], usize, &mut [f32]);

    fn product(a: &[f32], b: &[f32]) -> f64 {
        a.iter()
            .zip(b)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum()
    }

    #[test]
    fn matrix_products() {
        let (x, seed) = (numbers(5 * 6 + 6 * 4 + 4, 1), numbers(5 * 4, 2));
        let run = |forward: Forward, x: &[f32]| {
            let mut y = [0.0; 20];
            forward(&x[..30], &x[30..54], &x[54..], 6, &mut y);
            product(&y, &seed)
        };
        let mut g = [0.0; 58];
        let (dx, rest) = g.split_at_mut(30);
        let (dw, db) = rest.split_at_mut(24);
        matrix_product::backward_by_hand(&x[..30], dx, &x[30..54], dw, db, 6, &seed);
        check("matrix product", &x, &g, |x| {
            run(matrix_product::forward, x)
        });
        let mut g = [0.0; 58];
        let (dx, rest) = g.split_at_mut(30);
        let (dw, db) = rest.split_at_mut(24);
        projection::backward_by_hand(&x[..30], dx, &x[30..54], dw, db, 6, &seed);
        check("projection", &x, &g, |x| run(projection::forward, x));
    }

    #[test]
    fn attention_heads() {
        let (steps, channels, heads) = (5, 6, 2);
        let (x, seed) = (
            numbers(steps * 3 * channels, 3),
            numbers(steps * channels, 4),
        );
        let run = |x: &[f32], weights: &mut [f32]| {
            let (mut scores, mut y) = (
                vec![0.0; heads * steps * steps],
                vec![0.0; steps * channels],
            );
            attention::forward(x, &mut scores, weights, &mut y, steps, channels, heads);
            product(&y, &seed)
        };
        let mut weights = vec![0.0; heads * steps * steps];
        run(&x, &mut weights);
        let mut g = vec![0.0; x.len()];
        attention::backward_by_hand(&x, &mut g, &weights, &seed, steps, channels, heads);
        check("attention", &x, &g, |x| {
            run(x, &mut vec![0.0; heads * steps * steps])
        });
    }

    #[test]
    fn norms_and_activations() {
        let (x, seed) = (numbers(3 * 20 + 40, 5), numbers(60, 6));
        let run = |x: &[f32], means: &mut [f32], reciprocals: &mut [f32]| {
            let mut y = [0.0; 60];
            layer_norm::forward(&x[..60], &x[60..80], &x[80..], means, reciprocals, &mut y);
            product(&y, &seed)
        };
        let (mut means, mut reciprocals) = ([0.0; 3], [0.0; 3]);
        run(&x, &mut means, &mut reciprocals);
        let mut g = [0.0; 100];
        let (dx, rest) = g.split_at_mut(60);
        let (dw, db) = rest.split_at_mut(20);
        layer_norm::backward_by_hand(
            &x[..60],
            dx,
            &x[60..80],
            dw,
            db,
            &means,
            &reciprocals,
            &seed,
        );
        check("layer norm", &x, &g, |x| {
            run(x, &mut [0.0; 3], &mut [0.0; 3])
        });

        let mut g = [0.0; 60];
        gelu::backward_by_hand(&x[..60], &mut g, &seed);
        check("GELU", &x[..60], &g, |x| {
            let mut y = [0.0; 60];
            gelu::forward(x, &mut y);
            product(&y, &seed)
        });
    }

    #[test]
    fn losses() {
        let (x, seed, targets) = (numbers(3 * 11, 7), numbers(3, 8), [4u32, 10, 0]);
        let (mut p, mut losses) = ([0.0; 33], [0.0; 3]);
        cross_entropy::forward(&x, &targets, &mut p, &mut losses);
        let mut g = [0.0; 33];
        cross_entropy::backward_by_hand(&mut g, &targets, &p, &seed);
        check("cross-entropy", &x, &g, |x| {
            let (mut p, mut losses) = ([0.0; 33], [0.0; 3]);
            cross_entropy::forward(x, &targets, &mut p, &mut losses);
            product(&losses, &seed)
        });
        let mut logarithms = [0.0; 3];
        loss::forward(&x, &targets, &mut logarithms, &mut losses);
        let mut g = [0.0; 33];
        loss::backward_by_hand(&x, &mut g, &targets, &logarithms, &seed);
        check("loss", &x, &g, |x| {
            let (mut logarithms, mut losses) = ([0.0; 3], [0.0; 3]);
            loss::forward(x, &targets, &mut logarithms, &mut losses);
            product(&losses, &seed)
        });
    }
}
