//! Memory: loads, stores, copies, the stack and the heap.

use ferrozyme_ir::{self as ir, OpView, Payload};
use ferrozyme_library::{AllocationFunction, AllocationRole};
use ferrozyme_refusal::Refusal;

use super::ExportError;
use super::body::Body;
use ferrozyme_convention::allocation::c_function;
use ferrozyme_convention::stop::call_stop;
use ferrozyme_llvm::{AtomicOperation, Block, IntPredicate, Opcode as Llvm, Ordering, Type, Value};

/// What `malloc` aligns to on 64-bit machines.
const MALLOC_ALIGNMENT: u64 = 16;

/// Whether a family is C's allocator.
fn is_of_c(family: &str) -> bool {
    family.is_empty() || family == "malloc"
}

impl<'c> Body<'_, '_, 'c> {
    /// An operation on memory.
    pub(super) fn memory(&mut self, data: &ir::OpData) -> Result<(), ExportError> {
        let operands = self.get_all(&data.operands)?;
        let align = match &data.payload {
            Payload::Align(align) | Payload::Alloc { align, .. } | Payload::Free { align, .. } => {
                align.bytes()
            }
            _ => 1,
        };
        // LLVM knows no larger one than this.
        let alignment = align.min(1 << 30) as u32;
        match data.view_with(&operands) {
            OpView::Load { address, .. } => {
                let ty = self.type_of(data.results[0]);
                let stored = self
                    .exporter
                    .builder
                    .load(self.stored_type(ty), address)
                    .set_alignment(alignment);
                self.mark_access(stored);
                let value = self.convert(stored, self.llvm_type(ty), Llvm::Trunc);
                self.set(data.results[0], value);
            }
            OpView::Store { value, address, .. } => {
                let ty = self.type_of(data.value());
                let stored = self.convert(value, self.stored_type(ty), Llvm::ZExt);
                let access = self
                    .exporter
                    .builder
                    .store(stored, address)
                    .set_alignment(alignment);
                self.mark_access(access);
            }
            OpView::Stack { size, .. } => {
                let pointer = self.stack(size, alignment);
                self.set(data.results[0], pointer);
            }
            OpView::Alloc {
                size,
                zeroed,
                family,
                ..
            } => {
                let pointer = self.allocate(size, align, zeroed, family)?;
                self.set(data.results[0], pointer);
            }
            OpView::Free {
                address,
                size,
                family,
                ..
            } => self.release(address, size, align, family)?,
            OpView::Copy {
                destination,
                source,
                size,
                ..
            } => drop(
                self.exporter
                    .builder
                    .copy(destination, alignment, source, alignment, size),
            ),
            OpView::Move {
                destination,
                source,
                size,
                ..
            } => drop(self.exporter.builder.copy_overlapping(
                destination,
                alignment,
                source,
                alignment,
                size,
            )),
            OpView::Fill {
                destination,
                byte,
                size,
                ..
            } => {
                self.exporter
                    .builder
                    .fill(destination, byte, size, alignment);
            }
            OpView::AtomicAdd { address, value, .. } => {
                let ty = self.type_of(data.value());
                let operation = if ty.is_float() {
                    AtomicOperation::FAdd
                } else {
                    AtomicOperation::Add
                };
                let old =
                    self.exporter
                        .builder
                        .atomic(operation, address, value, Ordering::Monotonic);
                // An atomic access needs the natural alignment at least; less is for LLVM to handle by a call.
                old.set_alignment(alignment);
                self.set(data.results[0], old);
            }
            _ => {
                return Err(self.problem(format!(
                    "{} is no operation on memory (a bug in Ferrozyme)",
                    data.opcode
                )));
            }
        }
        Ok(())
    }

    /// Says of an access in a loop whose iterations are independent that it is one of these.
    fn mark_access(&self, access: Value<'c>) {
        if let Some(group) = self.access_group {
            access.set_metadata("llvm.access.group", group);
        }
    }

    /// How a type is in memory: integers of odd widths, also in vectors, take whole bytes up to a power of two. LLVM would pack the lanes of `<8 x i1>` into one byte.
    fn stored_type(&self, ty: ir::Type) -> Type<'c> {
        match ty.scalar() {
            ir::Scalar::Int(bits) if u64::from(bits) != ty.scalar().bytes() * 8 => {
                self.llvm_type(ty.with_scalar(ir::Scalar::Int((ty.scalar().bytes() * 8) as u8)))
            }
            _ => self.llvm_type(ty),
        }
    }

    fn convert(&self, value: Value<'c>, to: Type<'c>, opcode: Llvm) -> Value<'c> {
        if value.ty() == to {
            value
        } else {
            self.exporter.builder.cast(opcode, value, to)
        }
    }

    /// Memory of the function's frame. Outside of loops a fixed size is made on entry, where LLVM can turn it into registers; inside, every time anew.
    fn stack(&self, size: Value<'c>, alignment: u32) -> Value<'c> {
        let context = self.exporter.context;
        let byte = context.integer(8);
        match size.as_unsigned() {
            Some(bytes) if self.loops == 0 => {
                let here = self.exporter.builder.block();
                self.exporter.builder.at_end(self.entry);
                let pointer = self
                    .exporter
                    .builder
                    .alloca(byte.array(bytes))
                    .set_alignment(alignment);
                self.exporter.builder.at_end(here);
                pointer
            }
            _ => self
                .exporter
                .builder
                .alloca_array(byte, size)
                .set_alignment(alignment),
        }
    }

    fn allocate(
        &mut self,
        size: Value<'c>,
        align: u64,
        zeroed: bool,
        family: &str,
    ) -> Result<Value<'c>, ExportError> {
        if is_of_c(family) {
            return Ok(self.allocate_from_c(size, align, zeroed));
        }
        let Some(known) = self.exporter.families.get(family) else {
            return Err(self.unknown_family(family));
        };
        let chosen = if zeroed {
            known.allocate_zeroed.as_ref().or(known.allocate.as_ref())
        } else {
            known.allocate.as_ref().or(known.allocate_zeroed.as_ref())
        };
        let Some((function, description)) = chosen.cloned() else {
            return Err(self.unknown_family(family));
        };
        if description.alignment.is_none() && align > MALLOC_ALIGNMENT {
            return Err(self.problem(format!(
                "the allocator {family} gives no memory aligned to {align} bytes"
            )));
        }
        let word = self.exporter.context.integer(64);
        let pointer = self.call_allocator(function, |index| {
            if description.size == Some(index) {
                Some(size)
            } else if description.count == Some(index) {
                Some(word.constant(1))
            } else if description.alignment == Some(index) {
                Some(word.constant(i128::from(align)))
            } else {
                None
            }
        })?;
        self.stop_if_null(pointer);
        if zeroed && !matches!(description.role, AllocationRole::Allocate { zeroed: true }) {
            self.exporter.builder.fill(
                pointer,
                self.exporter.context.integer(8).zero(),
                size,
                align.min(1 << 30) as u32,
            );
        }
        Ok(pointer)
    }

    fn allocate_from_c(&mut self, size: Value<'c>, align: u64, zeroed: bool) -> Value<'c> {
        let into = self.exporter.into;
        let builder = &self.exporter.builder;
        let context = self.exporter.context;
        let word = context.integer(64);
        let pointer = if align > MALLOC_ALIGNMENT {
            // The size must be a multiple of the alignment.
            let rounded = builder.binary(Llvm::Add, size, word.constant(i128::from(align - 1)));
            let rounded = builder.binary(Llvm::And, rounded, word.constant(-i128::from(align)));
            builder.call_function(
                c_function(into, "aligned_alloc"),
                &[word.constant(i128::from(align)), rounded],
            )
        } else if zeroed {
            builder.call_function(c_function(into, "calloc"), &[size, word.constant(1)])
        } else {
            builder.call_function(c_function(into, "malloc"), &[size])
        };
        self.stop_if_null(pointer);
        if zeroed && align > MALLOC_ALIGNMENT {
            self.exporter.builder.fill(
                pointer,
                context.integer(8).zero(),
                size,
                align.min(1 << 30) as u32,
            );
        }
        pointer
    }

    fn release(
        &mut self,
        pointer: Value<'c>,
        size: Option<Value<'c>>,
        align: u64,
        family: &str,
    ) -> Result<(), ExportError> {
        if is_of_c(family) {
            let free = c_function(self.exporter.into, "free");
            self.exporter.builder.call_function(free, &[pointer]);
            return Ok(());
        }
        let known = self
            .exporter
            .families
            .get(family)
            .and_then(|known| known.release.clone());
        let Some((function, description)) = known else {
            return Err(self.unknown_family(family));
        };
        let AllocationFunction {
            old_size,
            alignment,
            pointer: position,
            ..
        } = description;
        if old_size.is_some() && size.is_none() {
            return Err(self.problem(format!(
                "the allocator {family} needs the size of the freed memory, which is not known here"
            )));
        }
        let word = self.exporter.context.integer(64);
        // Nothing happens for null, but not every allocator knows that.
        let builder = &self.exporter.builder;
        let (release, after) = (self.new_block("release"), self.new_block("after"));
        let is_null = builder.compare_integers(IntPredicate::Eq, pointer, pointer.ty().zero());
        builder.branch_if(is_null, after, release);
        builder.at_end(release);
        self.call_allocator(function, |index| {
            if position == Some(index) {
                Some(pointer)
            } else if old_size == Some(index) {
                size
            } else if alignment == Some(index) {
                Some(word.constant(i128::from(align)))
            } else {
                None
            }
        })?;
        self.exporter.builder.branch(after);
        self.exporter.builder.at_end(after);
        Ok(())
    }

    fn call_allocator(
        &self,
        function: Value<'c>,
        argument: impl Fn(u32) -> Option<Value<'c>>,
    ) -> Result<Value<'c>, ExportError> {
        let parameters = function.value_type().parameters();
        let arguments: Option<Vec<Value<'c>>> = parameters
            .iter()
            .enumerate()
            .map(|(index, of)| argument(index as u32).filter(|value| value.ty() == *of))
            .collect();
        let arguments = arguments.ok_or_else(|| self.problem(format!("the allocation function {function} takes arguments that its attributes do not explain")))?;
        let call = self.exporter.builder.call_function(function, &arguments);
        call.set_call_convention(function.function_convention());
        Ok(call)
    }

    fn unknown_family(&self, family: &str) -> ExportError {
        self.problem(format!(
            "memory comes from the allocator `{family}`, whose functions are not in this program"
        ))
    }

    /// The Loop IR's allocations always succeed; where memory runs out, the program stops.
    fn stop_if_null(&mut self, pointer: Value<'c>) {
        let stop = self.out_of_memory_block();
        let go_on = self.new_block("allocated");
        let builder = &self.exporter.builder;
        let is_null = builder.compare_integers(IntPredicate::Eq, pointer, pointer.ty().zero());
        builder.branch_if(is_null, stop, go_on);
        builder.at_end(go_on);
    }

    fn out_of_memory_block(&mut self) -> Block<'c> {
        if let Some(block) = self.out_of_memory {
            return block;
        }
        let block = self.new_block("out_of_memory");
        let here = self.exporter.builder.block();
        self.exporter.builder.at_end(block);
        let (context, into) = (self.exporter.context, self.exporter.into);
        call_stop(
            context,
            into,
            &self.exporter.builder,
            &format!("{}\n", Refusal::OutOfMemory.stop_text()),
        );
        self.exporter.builder.unreachable();
        self.exporter.builder.at_end(here);
        self.out_of_memory = Some(block);
        block
    }
}
