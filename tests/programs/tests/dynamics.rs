//! Differential equations: fixed and adaptive steps, symplectic integration, implicit steps, a partial differential equation.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{Field, Mapping};

type State = [f64; 2];

fn lotka_volterra(state: &State, p: &[f64]) -> State {
    let [x, y] = *state;
    [p[0] * x - p[1] * x * y, p[2] * x * y - p[3] * y]
}

fn along(state: &State, step: f64, slope: &State) -> State {
    std::array::from_fn(|i| state[i] + step * slope[i])
}

#[autodiff_reverse(drunge, Duplicated, Const, Active)]
#[autodiff_forward(brunge, Dual, Const, Dual)]
fn runge_kutta(parameters: &[f64], steps: usize) -> f64 {
    let h = 2.0 / steps as f64;
    let mut state = [parameters[4], parameters[5]];
    for _ in 0..steps {
        let k1 = lotka_volterra(&state, parameters);
        let k2 = lotka_volterra(&along(&state, h / 2.0, &k1), parameters);
        let k3 = lotka_volterra(&along(&state, h / 2.0, &k2), parameters);
        let k4 = lotka_volterra(&along(&state, h, &k3), parameters);
        for i in 0..2 {
            state[i] += h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
        }
    }
    state[0] * state[1]
}

#[test]
fn runge_kutta_with_fixed_steps() {
    Field::new("RK4", |p| runge_kutta(p, 20))
        .reverse(|p, dp, seed| drunge(p, dp, 20, seed))
        .forward(|p, v| brunge(p, v, 20))
        .check(&[1.1, 0.4, 0.1, 0.4, 2.0, 1.0]);
}

#[autodiff_reverse(dadaptive, Duplicated, Active)]
#[autodiff_forward(badaptive, Dual, Dual)]
fn adaptive(parameters: &[f64]) -> f64 {
    // Step doubling: a step counts if two half steps agree with it, else it is halved. The tolerance is tight enough that the
    // choice of steps moves the result less than finite differences see.
    let rk4 = |state: &State, h: f64| -> State {
        let k1 = lotka_volterra(state, parameters);
        let k2 = lotka_volterra(&along(state, h / 2.0, &k1), parameters);
        let k3 = lotka_volterra(&along(state, h / 2.0, &k2), parameters);
        let k4 = lotka_volterra(&along(state, h, &k3), parameters);
        std::array::from_fn(|i| state[i] + h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]))
    };
    let (mut time, mut step, end) = (0.0, 0.5, 2.0);
    let mut state = [parameters[4], parameters[5]];
    while time < end {
        let h = f64::min(step, end - time);
        let whole = rk4(&state, h);
        let halves = rk4(&rk4(&state, h / 2.0), h / 2.0);
        let error = (whole[0] - halves[0])
            .abs()
            .max((whole[1] - halves[1]).abs());
        if error > 1e-9 {
            step = h / 2.0;
            continue;
        }
        time += h;
        state = halves;
        if error < 1e-11 {
            step = h * 2.0;
        }
    }
    state[0] + 2.0 * state[1]
}

#[test]
fn runge_kutta_with_adaptive_steps() {
    Field::new("adaptive RK4", adaptive)
        .reverse(dadaptive)
        .forward(badaptive)
        .check(&[1.1, 0.4, 0.1, 0.4, 2.0, 1.0]);
}

/// Dormand–Prince's embedded pair, with the step controlled by the error's fifth root and the step itself active.
fn dormand_prince(
    f: &dyn Fn(f64, &[f64]) -> Vec<f64>,
    start: &[f64],
    end: f64,
    tolerance: f64,
) -> Vec<f64> {
    const NODES: [f64; 7] = [0.0, 0.2, 0.3, 0.8, 8.0 / 9.0, 1.0, 1.0];
    const STAGES: [&[f64]; 7] = [
        &[],
        &[0.2],
        &[3.0 / 40.0, 9.0 / 40.0],
        &[44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0],
        &[
            19372.0 / 6561.0,
            -25360.0 / 2187.0,
            64448.0 / 6561.0,
            -212.0 / 729.0,
        ],
        &[
            9017.0 / 3168.0,
            -355.0 / 33.0,
            46732.0 / 5247.0,
            49.0 / 176.0,
            -5103.0 / 18656.0,
        ],
        &[
            35.0 / 384.0,
            0.0,
            500.0 / 1113.0,
            125.0 / 192.0,
            -2187.0 / 6784.0,
            11.0 / 84.0,
        ],
    ];
    const ERROR: [f64; 7] = [
        71.0 / 57600.0,
        0.0,
        -71.0 / 16695.0,
        71.0 / 1920.0,
        -17253.0 / 339200.0,
        22.0 / 525.0,
        -1.0 / 40.0,
    ];
    let mut y = start.to_vec();
    let (mut t, mut h) = (0.0, 0.1);
    while end - t > 1e-12 {
        h = f64::min(h, end - t);
        let mut slopes: Vec<Vec<f64>> = Vec::with_capacity(7);
        let mut point = y.clone();
        for (node, weights) in NODES.iter().zip(STAGES) {
            point = y.clone();
            for (weight, slope) in weights.iter().zip(&slopes) {
                for (point, slope) in point.iter_mut().zip(slope) {
                    *point += h * weight * slope;
                }
            }
            slopes.push(f(t + node * h, &point));
        }
        let mut error = 0.0f64;
        for i in 0..y.len() {
            let difference: f64 = ERROR
                .iter()
                .zip(&slopes)
                .map(|(e, slope)| h * e * slope[i])
                .sum();
            error = error.max(difference.abs() / (1.0 + y[i].abs()));
        }
        if error <= tolerance {
            t += h;
            y = point;
        }
        let factor = 0.9 * (tolerance / error.max(1e-300)).powf(0.2);
        h *= factor.clamp(0.2, 5.0);
    }
    y
}

#[autodiff_reverse(dembedded, Duplicated, Active)]
#[autodiff_forward(bembedded, Dual, Dual)]
fn van_der_pol(parameters: &[f64]) -> f64 {
    let stiffness = parameters[0];
    let f = |_time: f64, y: &[f64]| vec![y[1], stiffness * (1.0 - y[0] * y[0]) * y[1] - y[0]];
    let end = dormand_prince(&f, &parameters[1..3], 1.5, 1e-9);
    end[0] * end[0] + end[1]
}

#[test]
fn embedded_pair_with_an_active_step() {
    Field::new("Dormand–Prince", van_der_pol)
        .reverse(dembedded)
        .forward(bembedded)
        .check(&[1.5, 1.0, 0.5]);
}

/// Bodies in three dimensions, as a struct of arrays.
struct Bodies {
    position: Vec<[f64; 3]>,
    velocity: Vec<[f64; 3]>,
    mass: Vec<f64>,
}

impl Bodies {
    fn accelerate(&mut self, h: f64) {
        let n = self.mass.len();
        for i in 0..n {
            for j in i + 1..n {
                let d: [f64; 3] =
                    std::array::from_fn(|k| self.position[j][k] - self.position[i][k]);
                let square = d.iter().map(|d| d * d).sum::<f64>() + 1e-2;
                let force = 1.0 / (square * square.sqrt());
                for k in 0..3 {
                    self.velocity[i][k] += h * self.mass[j] * force * d[k];
                    self.velocity[j][k] -= h * self.mass[i] * force * d[k];
                }
            }
        }
    }

    fn drift(&mut self, h: f64) {
        for (position, velocity) in self.position.iter_mut().zip(&self.velocity) {
            for k in 0..3 {
                position[k] += h * velocity[k];
            }
        }
    }
}

#[autodiff_reverse(dbodies, Duplicated, Const, Active)]
#[autodiff_forward(bbodies, Dual, Const, Dual)]
fn bodies(x: &[f64], steps: usize) -> f64 {
    let n = x.len() / 7;
    let triple = |from: &[f64]| [from[0], from[1], from[2]];
    let mut bodies = Bodies {
        position: Vec::new(),
        velocity: Vec::new(),
        mass: Vec::new(),
    };
    for body in x.chunks(7).take(n) {
        bodies.position.push(triple(body));
        bodies.velocity.push(triple(&body[3..]));
        bodies.mass.push(body[6]);
    }
    for _ in 0..steps {
        bodies.accelerate(0.01);
        bodies.drift(0.02);
        bodies.accelerate(0.01);
    }
    let kinetic: f64 = bodies
        .velocity
        .iter()
        .zip(&bodies.mass)
        .map(|(v, m)| 0.5 * m * v.iter().map(|v| v * v).sum::<f64>())
        .sum();
    kinetic + bodies.position[0][0]
}

#[test]
fn bodies_by_leapfrog() {
    let x = [
        0.0, 0.1, 0.0, 0.0, 0.3, 0.1, 1.0, //
        1.0, 0.0, 0.2, 0.0, -0.5, 0.2, 0.75, //
        -0.5, 0.9, -0.3, 0.4, 0.0, -0.2, 0.5,
    ];
    Field::new("N bodies", |x| bodies(x, 10))
        .reverse(|x, dx, seed| dbodies(x, dx, 10, seed))
        .forward(|x, v| bbodies(x, v, 10))
        .check(&x);
}

#[autodiff_reverse(dheat, Duplicated, Duplicated)]
#[autodiff_forward(bheat, Dual, Dual)]
fn heat(start: &[f64], end: &mut [f64]) {
    // Two buffers that change roles after each step.
    let n = start.len();
    let mut now = start.to_vec();
    let mut next = vec![0.0; n];
    for _ in 0..12 {
        for i in 0..n {
            let left = now[(i + n - 1) % n];
            let right = now[(i + 1) % n];
            let conductivity = 0.2 + 0.05 * now[i] * now[i];
            next[i] = now[i] + conductivity * (left - 2.0 * now[i] + right);
        }
        std::mem::swap(&mut now, &mut next);
    }
    end.copy_from_slice(&now);
}

#[test]
fn heat_equation_with_swapped_buffers() {
    Mapping::new("heat equation", 6, heat)
        .reverse(dheat)
        .forward(bheat)
        .check(&[0.0, 0.5, 1.0, 0.75, -0.5, 0.25]);
}

#[autodiff_reverse(dwave, Duplicated, Const, Const, Active)]
#[autodiff_forward(bwave, Dual, Const, Const, Dual)]
fn wave_on_a_membrane(speed: &[f64], width: usize, steps: usize) -> f64 {
    let height = speed.len() / width;
    let mut old = vec![vec![0.0; width]; height];
    let mut now = old.clone();
    now[height / 2][width / 2] = 1.0;
    for _ in 0..steps {
        let mut next = vec![vec![0.0; width]; height];
        for y in 1..height - 1 {
            for x in 1..width - 1 {
                let laplacian =
                    now[y - 1][x] + now[y + 1][x] + now[y][x - 1] + now[y][x + 1] - 4.0 * now[y][x];
                let c = speed[y * width + x];
                next[y][x] = 2.0 * now[y][x] - old[y][x] + 0.1 * c * c * laplacian;
            }
        }
        old = now;
        now = next;
    }
    now.iter().flatten().map(|u| u * u).sum()
}

#[test]
fn wave_equation_in_two_dimensions() {
    let speed: Vec<f64> = (0..30)
        .map(|i| 1.0 + 0.3 * (f64::from(i) * 0.7).sin())
        .collect();
    Field::new("membrane", |c| wave_on_a_membrane(c, 6, 7))
        .reverse(|c, dc, seed| dwave(c, dc, 6, 7, seed))
        .forward(|c, v| bwave(c, v, 6, 7))
        .check(&speed);
}

#[autodiff_reverse(dimplicit, Duplicated, Active)]
#[autodiff_forward(bimplicit, Dual, Dual)]
fn implicit_steps(x: &[f64]) -> f64 {
    // Backward Euler for y' = -a y³, each step by Newton's method until it stands still.
    let (mut y, a) = (x[0], x[1]);
    for _ in 0..10 {
        let old = y;
        let mut iterations = 0;
        loop {
            let residual = y - old + 0.1 * a * y * y * y;
            let slope = 1.0 + 0.3 * a * y * y;
            let change = residual / slope;
            y -= change;
            iterations += 1;
            if change.abs() < 1e-14 || iterations == 50 {
                break;
            }
        }
    }
    y
}

#[test]
fn implicit_euler() {
    Field::new("implicit Euler", implicit_steps)
        .reverse(dimplicit)
        .forward(bimplicit)
        .check(&[1.5, 2.0]);
}
