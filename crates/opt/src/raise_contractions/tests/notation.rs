//! The short notation, and its compilation to Loop IR.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::str::FromStr;

/// A program: its statements, and the letters of its arrays and counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Notation {
    pub body: Vec<Statement>,
    pub unknown: Unknown,
}

/// What the compiler is not told.
#[derive(Clone, Debug, Default)]
pub(super) struct Unknown {
    /// Strides are parameters.
    pub strides: bool,
    /// Parameters that are trip counts may be anything, and are limited to what a counter can reach.
    pub trips: bool,
    /// Products of counters and strides are computed in 32 bits, modulo 2³².
    pub narrow: bool,
    /// Arrays may overlap. If there is a number, they are parts of one, and begin so many elements after each other.
    pub overlap: Option<Option<usize>>,
}

/// A number of iterations.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Trips {
    Known(i64),
    /// A parameter, and what it is when the program runs.
    Parameter(i64),
    /// The counter of a loop around.
    Counter(char),
}

#[derive(Clone, Debug)]
pub(super) enum Statement {
    For(char, Trips, Vec<Statement>),
    /// Statements under a condition.
    If(Condition, Vec<Statement>),
    /// A place, and the terms that it becomes.
    Assign(Place, Vec<Term>),
    /// Two places that both become the same.
    Both(Place, Place, Vec<Term>),
}

#[derive(Clone, Debug)]
pub(super) enum Condition {
    /// A parameter, and what it is when the program runs.
    Parameter(bool),
    /// Whether a counter is below a number.
    Below(char, i64),
}

/// `90i + 9j + 3` elements behind the beginning of an array.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub array: char,
    pub terms: Vec<(char, i64)>,
    pub base: i64,
}

#[derive(Clone, Debug)]
pub(super) struct Term {
    pub negative: bool,
    pub factor: Option<f64>,
    /// Loops in which products are summed up.
    pub sums: Vec<(char, Trips)>,
    pub product: Vec<Place>,
}

/// The smallest and the largest value of each counter.
type Ranges = BTreeMap<char, (i64, i64)>;

impl Notation {
    /// Calls `visit` for all places with the loops around each.
    fn each_place(&self, visit: &mut dyn FnMut(&Place, &Ranges)) {
        fn walk(body: &[Statement], ranges: &Ranges, visit: &mut dyn FnMut(&Place, &Ranges)) {
            let within = |ranges: &Ranges, counter: char, trips: &Trips| {
                let most = match trips {
                    Trips::Known(trips) | Trips::Parameter(trips) => *trips,
                    Trips::Counter(other) => ranges[other].1,
                };
                let mut ranges = ranges.clone();
                ranges.insert(counter, (0, (most - 1).max(0)));
                ranges
            };
            for statement in body {
                match statement {
                    Statement::For(counter, trips, body) => {
                        walk(body, &within(ranges, *counter, trips), visit);
                    }
                    Statement::If(_, body) => walk(body, ranges, visit),
                    Statement::Assign(place, terms) | Statement::Both(place, _, terms) => {
                        visit(place, ranges);
                        if let Statement::Both(_, other, _) = statement {
                            visit(other, ranges);
                        }
                        for term in terms {
                            let mut ranges = ranges.clone();
                            for (counter, trips) in &term.sums {
                                ranges = within(&ranges, *counter, trips);
                            }
                            for place in &term.product {
                                visit(place, &ranges);
                            }
                        }
                    }
                }
            }
        }
        walk(&self.body, &Ranges::new(), visit);
    }

    /// The arrays by letter.
    pub(super) fn arrays(&self) -> Vec<char> {
        let mut arrays = Vec::new();
        self.each_place(&mut |place, _| {
            if !arrays.contains(&place.array) {
                arrays.push(place.array);
            }
        });
        arrays.sort();
        arrays
    }

    /// How many elements the arrays have.
    pub(super) fn sizes(&self) -> Vec<usize> {
        let arrays = self.arrays();
        let mut sizes = vec![1; arrays.len()];
        self.each_place(&mut |place, ranges| {
            let (mut least, mut most) = (place.base, place.base);
            for (counter, stride) in &place.terms {
                let (from, to) = ranges[counter];
                least += (stride * from).min(stride * to);
                most += (stride * from).max(stride * to);
            }
            assert!(least >= 0, "{place:?} begins before its array");
            let array = arrays.iter().position(|&array| array == place.array);
            let size = &mut sizes[array.expect("it has one")];
            *size = (*size).max(most as usize + 1);
        });
        sizes
    }

    /// The strides of all places, each once.
    pub(super) fn strides(&self) -> Vec<i64> {
        let mut strides = Vec::new();
        self.each_place(&mut |place, _| strides.extend(place.terms.iter().map(|term| term.1)));
        strides.sort();
        strides.dedup();
        strides
    }

    /// The conditions that are parameters.
    pub(super) fn conditions(&self) -> Vec<bool> {
        fn walk(body: &[Statement], found: &mut Vec<bool>) {
            for statement in body {
                match statement {
                    Statement::For(_, _, body) => walk(body, found),
                    Statement::If(condition, body) => {
                        if let Condition::Parameter(holds) = condition {
                            found.push(*holds);
                        }
                        walk(body, found);
                    }
                    Statement::Assign(..) | Statement::Both(..) => {}
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.body, &mut found);
        found
    }

    /// The values of the parameters that are trip counts.
    pub(super) fn trips(&self) -> Vec<i64> {
        fn walk(body: &[Statement], found: &mut Vec<i64>) {
            let note = |trips: &Trips, found: &mut Vec<i64>| {
                if let Trips::Parameter(value) = trips {
                    found.push(*value);
                }
            };
            for statement in body {
                match statement {
                    Statement::For(_, trips, body) => {
                        note(trips, found);
                        walk(body, found);
                    }
                    Statement::If(_, body) => walk(body, found),
                    Statement::Assign(_, terms) | Statement::Both(_, _, terms) => {
                        for (_, trips) in terms.iter().flat_map(|term| &term.sums) {
                            note(trips, found);
                        }
                    }
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.body, &mut found);
        found
    }
}

// ---- compilation

/// The program as Loop IR.
pub(super) fn compile(notation: &Notation) -> String {
    let unknown = &notation.unknown;
    let alone = if unknown.overlap.is_none() {
        " noalias"
    } else {
        ""
    };
    let arrays = notation.arrays();
    let mut params: Vec<String> = (arrays.iter())
        .map(|array| format!("%{array}: ptr{alone}"))
        .collect();
    let range = if unknown.trips { "" } else { " range 0..=64" };
    let trips = notation.trips().len();
    params.extend((0..trips).map(|n| format!("%n{n}: i64{range}")));
    params.extend((0..notation.conditions().len()).map(|n| format!("%c{n}: i1")));
    let mut compiler = Compiler {
        narrow: unknown.narrow,
        ..Compiler::default()
    };
    if unknown.strides {
        for (n, stride) in notation.strides().into_iter().enumerate() {
            params.push(format!("%s{n}: i64"));
            compiler.strides.insert(stride, format!("%s{n}"));
        }
    }
    if unknown.trips {
        for n in 0..trips {
            let most = i64::MAX;
            compiler.line(format_args!("%limited{n} = umin i64 %n{n}, {most}"));
        }
        compiler.limited = true;
    }
    compiler.body(&notation.body);
    format!(
        "func @main({}) {{\n{}return\n}}\n",
        params.join(", "),
        compiler.text
    )
}

#[derive(Default)]
struct Compiler {
    text: String,
    values: usize,
    parameters: usize,
    conditions: usize,
    counters: BTreeMap<char, String>,
    /// The parameters that are strides.
    strides: BTreeMap<i64, String>,
    /// Whether indices are computed in 32 bits.
    narrow: bool,
    /// Whether trip counts are limited to what a counter can reach.
    limited: bool,
}

impl Compiler {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{line}").expect("writing into a string does not fail");
    }

    fn value(&mut self) -> String {
        self.values += 1;
        format!("%v{}", self.values)
    }

    fn trips(&mut self, trips: &Trips) -> String {
        match trips {
            Trips::Known(trips) => trips.to_string(),
            Trips::Counter(counter) => self.counters[counter].clone(),
            Trips::Parameter(_) => {
                self.parameters += 1;
                let name = if self.limited { "limited" } else { "n" };
                format!("%{name}{}", self.parameters - 1)
            }
        }
    }

    fn body(&mut self, body: &[Statement]) {
        for statement in body {
            match statement {
                Statement::For(counter, trips, body) => {
                    let (name, trips) = (self.value(), self.trips(trips));
                    self.line(format_args!("for {name}: i64 = 0 to {trips} step 1 {{"));
                    let outer = self.counters.insert(*counter, name);
                    self.body(body);
                    match outer {
                        Some(outer) => drop(self.counters.insert(*counter, outer)),
                        None => drop(self.counters.remove(counter)),
                    }
                    self.line(format_args!("yield\n}}"));
                }
                Statement::If(condition, body) => {
                    let condition = self.condition(condition);
                    self.line(format_args!("if {condition} {{"));
                    self.body(body);
                    self.line(format_args!("yield\n}} else {{\nyield\n}}"));
                }
                Statement::Assign(place, terms) | Statement::Both(place, _, terms) => {
                    let mut sum: Option<String> = None;
                    for term in terms {
                        let value = self.term(term);
                        let next = self.value();
                        match (&sum, term.negative) {
                            (None, false) => {
                                sum = Some(value);
                                continue;
                            }
                            (None, true) => self.line(format_args!("{next} = fneg f64 {value}")),
                            (Some(sum), false) => {
                                self.line(format_args!("{next} = fadd f64 {sum}, {value}"))
                            }
                            (Some(sum), true) => {
                                self.line(format_args!("{next} = fsub f64 {sum}, {value}"))
                            }
                        }
                        sum = Some(next);
                    }
                    let sum = sum.expect("there is a term");
                    let address = self.address(place);
                    self.line(format_args!("store f64 {sum}, {address} align 8"));
                    if let Statement::Both(_, other, _) = statement {
                        let address = self.address(other);
                        self.line(format_args!("store f64 {sum}, {address} align 8"));
                    }
                }
            }
        }
    }

    fn condition(&mut self, condition: &Condition) -> String {
        match condition {
            Condition::Parameter(_) => {
                self.conditions += 1;
                format!("%c{}", self.conditions - 1)
            }
            Condition::Below(counter, number) => {
                let (name, counter) = (self.value(), self.counters[counter].clone());
                self.line(format_args!("{name} = icmp slt i64 {counter}, {number}"));
                name
            }
        }
    }

    fn address(&mut self, place: &Place) -> String {
        let mut index = place.base.to_string();
        for (counter, stride) in &place.terms {
            let (scaled, next) = (self.value(), self.value());
            let counter = self.counters[counter].clone();
            let stride = match self.strides.get(stride) {
                Some(parameter) => parameter.clone(),
                None => stride.to_string(),
            };
            match self.narrow {
                true => {
                    let [few, other, product] = [self.value(), self.value(), self.value()];
                    self.line(format_args!("{few} = trunc_int i64 {counter} to i32"));
                    self.line(format_args!("{other} = trunc_int i64 {stride} to i32"));
                    self.line(format_args!("{product} = mul i32 {few}, {other}"));
                    let extend = if stride.starts_with('-') {
                        "sext"
                    } else {
                        "zext"
                    };
                    self.line(format_args!("{scaled} = {extend} i32 {product} to i64"));
                }
                false => self.line(format_args!("{scaled} = mul nsw i64 {counter}, {stride}")),
            }
            self.line(format_args!("{next} = add nsw i64 {index}, {scaled}"));
            index = next;
        }
        let address = self.value();
        let array = place.array;
        self.line(format_args!(
            "{address} = offset inbounds %{array}, {index} * 8"
        ));
        address
    }

    fn term(&mut self, term: &Term) -> String {
        let value = self.sum(&term.sums, &term.product, None);
        match term.factor {
            Some(factor) => {
                let scaled = self.value();
                self.line(format_args!("{scaled} = fmul f64 {factor:?}, {value}"));
                scaled
            }
            None => value,
        }
    }

    /// The sum of products over loops, added to what it is so far.
    fn sum(&mut self, sums: &[(char, Trips)], product: &[Place], so_far: Option<&str>) -> String {
        let Some(((counter, trips), inner)) = sums.split_first() else {
            let product = self.product(product);
            let Some(so_far) = so_far else {
                return product;
            };
            let sum = self.value();
            self.line(format_args!("{sum} = fadd f64 {so_far}, {product}"));
            return sum;
        };
        let (result, name, carried) = (self.value(), self.value(), self.value());
        let (trips, start) = (self.trips(trips), so_far.unwrap_or("0.0"));
        self.line(format_args!(
            "{result} = for {name}: i64 = 0 to {trips} step 1 with ({carried}: f64 = {start}) {{"
        ));
        self.counters.insert(*counter, name);
        let next = self.sum(inner, product, Some(&carried));
        self.line(format_args!("yield {next}\n}}"));
        self.counters.remove(counter);
        result
    }

    fn product(&mut self, places: &[Place]) -> String {
        let mut product: Option<String> = None;
        for place in places {
            let address = self.address(place);
            let factor = self.value();
            self.line(format_args!("{factor} = load f64 {address} align 8"));
            product = Some(match product {
                Some(product) => {
                    let next = self.value();
                    self.line(format_args!("{next} = fmul f64 {product}, {factor}"));
                    next
                }
                None => factor,
            });
        }
        product.unwrap_or_else(|| "1.0".to_owned())
    }
}

// ---- parsing

impl FromStr for Notation {
    type Err = String;

    fn from_str(text: &str) -> Result<Notation, String> {
        let mut parser = Parser { rest: text };
        let body = parser.statements()?;
        match parser.rest.trim() {
            "" => Ok(Notation {
                body,
                unknown: Unknown::default(),
            }),
            rest => Err(format!("`{rest}` is not a statement")),
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn accept(&mut self, text: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, text: &str) -> Result<(), String> {
        match self.accept(text) {
            true => Ok(()),
            false => Err(format!("expected `{text}` before `{}`", self.rest)),
        }
    }

    fn letter(&mut self, is: fn(&char) -> bool) -> Option<char> {
        self.rest = self.rest.trim_start();
        let letter = self.rest.chars().next().filter(is)?;
        self.rest = &self.rest[1..];
        Some(letter)
    }

    fn number(&mut self) -> Option<i64> {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_ascii_digit());
        let (digits, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let number = digits.parse().ok()?;
        self.rest = rest;
        Some(number)
    }

    fn statements(&mut self) -> Result<Vec<Statement>, String> {
        let mut statements = Vec::new();
        loop {
            if self.accept("for ") {
                let (counter, trips) = self.counted()?;
                let body = match self.accept("{") {
                    true => {
                        let body = self.statements()?;
                        self.expect("}")?;
                        body
                    }
                    false => {
                        let mut inner = self.statements()?;
                        // A loop without braces holds one statement.
                        let rest = inner.split_off(1.min(inner.len()));
                        statements.push(Statement::For(counter, trips, inner));
                        statements.extend(rest);
                        return Ok(statements);
                    }
                };
                statements.push(Statement::For(counter, trips, body));
            } else if let Some(array) = self.letter(char::is_ascii_uppercase) {
                let place = self.place(array)?;
                statements.push(self.assignment(place)?);
            } else {
                return Ok(statements);
            }
        }
    }

    fn counted(&mut self) -> Result<(char, Trips), String> {
        let counter = self.letter(char::is_ascii_lowercase).ok_or("a counter")?;
        self.expect(":")?;
        let trips = match self.accept("?") {
            true => Trips::Parameter(self.number().ok_or("a trip count")?),
            false => match self.number() {
                Some(trips) => Trips::Known(trips),
                None => Trips::Counter(self.letter(char::is_ascii_lowercase).ok_or("trips")?),
            },
        };
        Ok((counter, trips))
    }

    fn place(&mut self, array: char) -> Result<Place, String> {
        self.expect("[")?;
        let mut place = Place {
            array,
            terms: Vec::new(),
            base: 0,
        };
        loop {
            let sign = match self.accept("-") {
                true => -1,
                false => {
                    self.accept("+");
                    1
                }
            };
            let number = self.number();
            match self.letter(char::is_ascii_lowercase) {
                Some(counter) => place.terms.push((counter, sign * number.unwrap_or(1))),
                None => place.base += sign * number.ok_or("an index")?,
            }
            if self.accept("]") {
                return Ok(place);
            }
        }
    }

    fn assignment(&mut self, place: Place) -> Result<Statement, String> {
        let old = Term {
            negative: false,
            factor: None,
            sums: Vec::new(),
            product: vec![place.clone()],
        };
        let mut terms = Vec::new();
        let mut negative = false;
        if self.accept("+=") {
            terms.push(old);
        } else if self.accept("-=") {
            terms.push(old);
            negative = true;
        } else {
            self.expect("=")?;
        }
        loop {
            terms.push(self.term(negative)?);
            negative = match (self.accept("+ "), self.accept("- ")) {
                (true, _) => false,
                (_, true) => true,
                _ => return Ok(Statement::Assign(place, terms)),
            };
        }
    }

    fn term(&mut self, negative: bool) -> Result<Term, String> {
        let factor = self.number().map(|number| number as f64);
        let mut term = Term {
            negative,
            factor,
            sums: Vec::new(),
            product: Vec::new(),
        };
        if factor.is_some() && !self.accept("*") {
            return Ok(term);
        }
        while self.accept("sum ") {
            let counted = self.counted()?;
            term.sums.push(counted);
        }
        loop {
            let array = self.letter(char::is_ascii_uppercase).ok_or("an array")?;
            term.product.push(self.place(array)?);
            if !self.accept("*") {
                return Ok(term);
            }
        }
    }
}
