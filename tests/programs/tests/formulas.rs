//! A parser of formulas: the tree that it builds holds numbers, text and boxes in the same places, and the program stops.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::assert_stops;

/// A parser of formulas that builds a tree, and the evaluation of that tree, both inside.
enum Formula {
    Number(f64),
    Variable(usize),
    Binary(char, Box<Formula>, Box<Formula>),
    Call(String, Box<Formula>),
}

struct Parser<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<Formula, String> {
        let mut left = self.product()?;
        while let Some(sign @ ('+' | '-')) = self.rest.peek().copied() {
            self.rest.next();
            left = Formula::Binary(sign, Box::new(left), Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Formula, String> {
        let mut left = self.atom()?;
        while let Some(sign @ ('*' | '/')) = self.rest.peek().copied() {
            self.rest.next();
            left = Formula::Binary(sign, Box::new(left), Box::new(self.atom()?));
        }
        Ok(left)
    }

    fn atom(&mut self) -> Result<Formula, String> {
        let Some(&first) = self.rest.peek() else {
            return Err("the formula ends too early".to_string());
        };
        if first == '(' {
            self.rest.next();
            let inside = self.sum()?;
            return if self.rest.next() == Some(')') {
                Ok(inside)
            } else {
                Err("a parenthesis is missing".to_string())
            };
        }
        let mut word = String::new();
        while let Some(&c) = self.rest.peek() {
            if !(c.is_alphanumeric() || c == '.') {
                break;
            }
            word.push(c);
            self.rest.next();
        }
        if let Ok(number) = word.parse::<f64>() {
            return Ok(Formula::Number(number));
        }
        if let Some(index) = word
            .strip_prefix('x')
            .and_then(|digits| digits.parse().ok())
        {
            return Ok(Formula::Variable(index));
        }
        if self.rest.peek() == Some(&'(') {
            return Ok(Formula::Call(word, Box::new(self.atom()?)));
        }
        Err(format!("`{word}` is unknown"))
    }
}

impl Formula {
    fn evaluate(&self, x: &[f64]) -> f64 {
        match self {
            Formula::Number(value) => *value,
            Formula::Variable(index) => x[*index],
            Formula::Binary(sign, a, b) => {
                let (a, b) = (a.evaluate(x), b.evaluate(x));
                match sign {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    _ => a / b,
                }
            }
            Formula::Call(name, argument) => {
                let argument = argument.evaluate(x);
                match name.as_str() {
                    "sin" => argument.sin(),
                    "exp" => argument.exp(),
                    _ => argument,
                }
            }
        }
    }
}

#[autodiff_reverse(dformula, Duplicated, Const, Active)]
#[autodiff_forward(bformula, Dual, Const, Dual)]
fn formula(x: &[f64], text: &str) -> f64 {
    let mut parser = Parser {
        rest: text.chars().peekable(),
    };
    match parser.sum() {
        Ok(formula) => formula.evaluate(x),
        Err(_) => f64::NAN,
    }
}

/// What the tree holds in the place of numbers is text without a shadow: FZ0702, or FZ0710 where that is looked at as a number first.
const STOPS: &str = "[FZ07";

const TEXT: &str = "sin(x0*x1)+2.5*x1/(1+exp(x2))-x0";

#[test]
fn parser_and_evaluation_in_reverse() {
    assert_stops("parser_and_evaluation_in_reverse", STOPS, || {
        dformula(&[0.7, 1.3, -0.4], &mut [0.0; 3], TEXT, 1.0);
    });
}

#[test]
fn parser_and_evaluation_forward() {
    assert_stops("parser_and_evaluation_forward", STOPS, || {
        bformula(&[0.7, 1.3, -0.4], &[1.0, 0.0, 0.0], TEXT);
    });
}
