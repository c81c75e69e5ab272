//! Derivatives are made when the tests are linked: another perturbation is another link.

fn main() {
    println!("cargo::rerun-if-env-changed=FERROZYME_PERTURB");
}
