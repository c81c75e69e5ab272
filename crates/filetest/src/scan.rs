//! Reads the small languages of directives: signatures and values.

/// A position in a line of text, with a small parser.
#[derive(Clone, Copy)]
pub struct Scanner<'t> {
    whole: &'t str,
    rest: &'t str,
    /// How many brackets are open.
    depth: usize,
}

/// How deep brackets may be nested.
const DEEPEST: usize = 200;

impl<'t> Scanner<'t> {
    /// At the start of a text.
    pub fn new(text: &'t str) -> Scanner<'t> {
        Scanner {
            whole: text,
            rest: text.trim_start(),
            depth: 0,
        }
    }

    /// The rest of the text.
    pub fn rest(&self) -> &'t str {
        self.rest
    }

    /// Whether all has been read.
    pub fn at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Skips `mark` if it is next.
    pub fn eat(&mut self, mark: &str) -> bool {
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    /// Skips `mark`, which must be next.
    pub fn expect(&mut self, mark: &str) -> Result<(), String> {
        if self.eat(mark) {
            Ok(())
        } else {
            Err(self.complain(&format!("`{mark}`")))
        }
    }

    /// Skips `word` if it is next as a whole word.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let mut ahead = *self;
        let found = ahead.word().is_some_and(|found| found == word);
        if found {
            *self = ahead;
        }
        found
    }

    /// The letters, digits and `_ . ' + -` that come next, if any.
    pub fn word(&mut self) -> Option<&'t str> {
        let belongs = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '\'' | '+' | '-');
        let mut end = self
            .rest
            .find(|c: char| !belongs(c))
            .unwrap_or(self.rest.len());
        // An arrow is not part of a word.
        if let Some(arrow) = self.rest[..end].find("->") {
            end = arrow;
        } else if self.rest[..end].ends_with('-') && self.rest[end..].starts_with('>') {
            end -= 1;
        }
        if end == 0 {
            return None;
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        Some(word)
    }

    /// The name behind `@`.
    pub fn symbol(&mut self) -> Result<&'t str, String> {
        if !self.rest.starts_with('@') {
            return Err(self.complain("a function such as `@f`"));
        }
        self.eat("@");
        self.word()
            .ok_or_else(|| self.complain("a name behind `@`"))
    }

    /// A whole number.
    pub fn number(&mut self) -> Result<usize, String> {
        let mut ahead = *self;
        match ahead.word().and_then(|word| word.parse().ok()) {
            Some(number) => {
                *self = ahead;
                Ok(number)
            }
            None => Err(self.complain("a whole number")),
        }
    }

    /// Things separated by commas, up to `close`.
    pub fn list<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let mut items = Vec::new();
        while !self.eat(close) {
            if !items.is_empty() {
                if !self.eat(",") {
                    return Err(self.complain(&format!("`,` or `{close}`")));
                }
                if self.eat(close) {
                    break;
                }
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Reads something in brackets, which may be nested to a limited depth.
    pub fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.depth == DEEPEST {
            return Err(format!(
                "brackets are nested more than {DEEPEST} levels deep"
            ));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Nothing more may follow.
    pub fn finish(&self) -> Result<(), String> {
        if self.at_end() {
            Ok(())
        } else {
            Err(self.complain("the end"))
        }
    }

    /// An error at this position.
    pub fn complain(&self, wanted: &str) -> String {
        let place = if self.at_end() {
            "it ends here".to_owned()
        } else {
            format!("here stands `{}`", self.rest)
        };
        format!("`{}`: expected {wanted}, but {place}", self.whole.trim())
    }
}
