//! Memory: allocations, type descriptions, loads and stores.

use super::super::Source;
use super::super::graph::{Integer, Target};
use super::super::span::Span;
use super::{FAR, Gather};
use ferrozyme_ir::{FunctionId, Global, GlobalId, Layout, Op, Scalar, Symbol, Value};

impl Gather<'_> {
    /// The memory of a global. All globals that it holds addresses of come to light with it.
    pub(super) fn global(&mut self, id: GlobalId) -> Target {
        if let Some(&target) = self.globals.get(&(id, 0)) {
            return target;
        }
        let module = self.module;
        let first = self.new_global(id);
        let mut unseen = vec![id];
        while let Some(id) = unseen.pop() {
            let global = &module.globals[id];
            let target = self.globals[&(id, 0)];
            if global.bytes.is_none() {
                self.graph.node_mut(target.class).escapes = true;
            }
            if let Some(layout) = &global.layout {
                self.describe(target, layout);
            }
            for &(offset, symbol) in &global.relocations {
                let pointee = match symbol {
                    Symbol::Function(other) => self.code(0, other),
                    Symbol::Global(other) => match self.globals.get(&(other, 0)) {
                        Some(&known) => known,
                        None => {
                            unseen.push(other);
                            self.new_global(other)
                        }
                    },
                };
                if offset < FAR {
                    let bytes = Scalar::Ptr.bytes();
                    let part = part_of(global, offset);
                    let target = self.part_of_global(id, part);
                    let cell = self.graph.access(target.class, offset as i64, bytes);
                    self.graph.set_pointer(cell, pointee);
                }
            }
        }
        first
    }

    fn new_global(&mut self, id: GlobalId) -> Target {
        let source = (self.bodies[0].id, Source::Global(id));
        let target = Target {
            class: self.graph.new_class(Some(source)),
            span: Span::exact(0),
        };
        self.globals.insert((id, 0), target);
        target
    }

    /// The memory of a part of a global. Offsets there are those of the whole.
    pub(super) fn part_of_global(&mut self, id: GlobalId, part: u32) -> Target {
        if part == 0 {
            return self.global(id);
        }
        if let Some(&target) = self.globals.get(&(id, part)) {
            return target;
        }
        let source = (self.bodies[0].id, Source::Global(id));
        let target = Target {
            class: self.graph.new_class(Some(source)),
            span: Span::exact(0),
        };
        self.graph.node_mut(target.class).escapes = self.module.globals[id].bytes.is_none();
        self.globals.insert((id, part), target);
        target
    }

    pub(super) fn code(&mut self, b: usize, id: FunctionId) -> Target {
        if let Some(&target) = self.functions.get(&id) {
            return target;
        }
        let source = (self.bodies[b].id, Source::Function(id));
        let target = Target {
            class: self.graph.new_class(Some(source)),
            span: Span::exact(0),
        };
        self.functions.insert(id, target);
        target
    }

    /// The memory that an operation makes, or that comes to light there.
    pub(super) fn made_by(
        &mut self,
        b: usize,
        op: Op,
        index: usize,
        source: Source,
    ) -> Option<Target> {
        let result = self.bodies[b].function.ops[op].results[index];
        if self.bodies[b].pointers[result].target.is_none() {
            let source = (self.bodies[b].id, source);
            let class = self.graph.new_class(Some(source));
            if matches!(source.1, Source::External(_) | Source::Address(_)) {
                let node = self.graph.node_mut(class);
                node.unknown_origin = true;
                node.escapes = true;
                node.clobbered = true;
                node.repointed = true;
            }
            self.bodies[b].pointers[result].target = Some(Target {
                class,
                span: Span::exact(0),
            });
        }
        self.bodies[b].pointers[result].target
    }

    /// States what a description says.
    pub(super) fn describe(&mut self, target: Target, layout: &Layout) {
        let stride = layout.stride.min(FAR);
        if stride > 0 {
            self.graph.repeat(target.class, i64::MIN, stride);
            let (root, _) = self.graph.find(target.class);
            let mut fields = layout.fields.iter();
            let plain = !layout.fields.is_empty() && fields.all(|f| f.scalar == Scalar::F64);
            let node = self.graph.node_mut(root);
            node.described = true;
            node.plain = plain;
        }
        let at = target.span.lo;
        let mut end = 0;
        for field in &layout.fields {
            let bytes = field.scalar.bytes();
            if field.offset > FAR {
                continue;
            }
            if stride > 0 && field.offset > end {
                self.describe_padding(target, end, field.offset - end);
            }
            end = field.offset + bytes;
            let offset = at + field.offset as i64;
            let cell = self.graph.access(target.class, offset, bytes);
            match field.scalar {
                Scalar::Ptr => {
                    let class = match self.graph.address_of(cell) {
                        Some(known) => known,
                        None => Target {
                            class: self.graph.new_class(None),
                            span: Span::exact(0),
                        },
                    };
                    self.graph.set_pointer(cell, class);
                    if let Some(pointee) = &field.pointee {
                        self.describe(class, pointee);
                    }
                }
                Scalar::Int(_) => self.graph.set_integer(cell, Integer::Certain),
                float => self.graph.set_float(cell, float),
            }
        }
        if stride > end {
            self.describe_padding(target, end, stride - end);
        }
    }

    fn describe_padding(&mut self, target: Target, from: u64, bytes: u64) {
        let offset = target.span.lo + from as i64;
        let cell = self.graph.access(target.class, offset, bytes);
        self.graph.set_padding(cell);
    }

    pub(super) fn load(&mut self, b: usize, result: Value, address: Value, op: Op) {
        let Some(target) = self.place_of(b, address) else {
            return;
        };
        let ty = self.bodies[b].function.ty(result);
        let bytes = ty.scalar().bytes();
        for lane in 0..u64::from(ty.lanes()) {
            let at = lane * bytes;
            let cell = self.graph.access_scalar(target, at as i64, ty.scalar());
            match ty.scalar() {
                Scalar::Ptr => {
                    let pointee = match self.graph.address_of(cell) {
                        Some(pointee) => pointee,
                        None => {
                            let source = (self.bodies[b].id, Source::Loaded(op));
                            let class = self.graph.new_class(Some(source));
                            let pointee = Target {
                                class,
                                span: Span::exact(0),
                            };
                            self.graph.set_pointer(cell, pointee);
                            pointee
                        }
                    };
                    if ty.is_vector() {
                        self.grow(b, result, Some(pointee));
                    } else {
                        self.assign(b, result, Some(pointee));
                    }
                }
                Scalar::Int(_) => {
                    if let Some(own) = self.cell_of(b, result) {
                        let own = self.graph.part(own, at, bytes);
                        self.graph.merge_cells(own, cell);
                    }
                    self.take_address(b, result);
                }
                float => {
                    self.graph.set_float(cell, float);
                    self.comes_from(b, result, cell);
                }
            }
        }
    }

    /// Something is written there.
    pub(super) fn writes(&mut self, target: Target) {
        let (class, _) = self.graph.find(target.class);
        self.graph.node_mut(class).written = true;
    }

    pub(super) fn store(&mut self, b: usize, value: Value, address: Value) {
        let Some(target) = self.place_of(b, address) else {
            return;
        };
        self.writes(target);
        let function = self.bodies[b].function;
        let ty = function.ty(value);
        let bytes = ty.scalar().bytes();
        for lane in 0..u64::from(ty.lanes()) {
            let at = lane * bytes;
            let cell = self.graph.access_scalar(target, at as i64, ty.scalar());
            match ty.scalar() {
                Scalar::Ptr => {
                    let pointee = self.place_of(b, value).or_else(|| {
                        self.graph.address_of(cell).is_none().then(|| Target {
                            class: self.graph.new_class(None),
                            span: Span::exact(0),
                        })
                    });
                    if let Some(pointee) = pointee {
                        self.graph.set_pointer(cell, pointee);
                    }
                }
                Scalar::Int(_) => {
                    match self.cell_of(b, value) {
                        Some(own) => {
                            let own = self.graph.part(own, at, bytes);
                            self.graph.merge_cells(own, cell);
                        }
                        None => self.same_integer(b, value, cell),
                    }
                    self.give_address(b, value, cell);
                }
                float => {
                    self.graph.set_float(cell, float);
                    self.goes_to(b, value, cell);
                }
            }
        }
    }
}

/// Which part of a global an offset lies in.
pub(super) fn part_of(global: &Global, offset: u64) -> u32 {
    global.parts.partition_point(|&start| start <= offset) as u32
}
