//! A device with its queue, buffers and kernels.

#![allow(unsafe_code, reason = "calls of the driver")]

use crate::library::{Handle, OpenClLibrary};
use crate::print::kernel_name;
use ferrozyme_backend::Error;
use ferrozyme_gpu::{Abilities, Device, GpuProgram, Kernel, Place};
use std::collections::VecDeque;
use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

/// Numbers of OpenCL's headers.
mod number {
    pub(super) const DEVICE_TYPE_GPU: u64 = 1 << 2;
    pub(super) const DEVICE_TYPE_ALL: u64 = 0xffff_ffff;
    pub(super) const DEVICE_TYPE: u32 = 0x1000;
    pub(super) const DEVICE_MAX_COMPUTE_UNITS: u32 = 0x1002;
    pub(super) const DEVICE_MAX_WORK_GROUP_SIZE: u32 = 0x1004;
    pub(super) const DEVICE_LOCAL_MEM_SIZE: u32 = 0x1023;
    pub(super) const DEVICE_NAME: u32 = 0x102b;
    pub(super) const DEVICE_EXTENSIONS: u32 = 0x1030;
    pub(super) const PROGRAM_BUILD_LOG: u32 = 0x1183;
    pub(super) const MEM_READ_WRITE: u64 = 1;
    pub(super) const QUEUE_PROFILING_ENABLE: u64 = 1 << 1;
    pub(super) const PROFILING_COMMAND_END: u32 = 0x1283;
}

/// How many writes may be under way, each with the bytes that it writes.
const UNDER_WAY: usize = 8;

/// Held while devices are looked for and kernels compiled: drivers there are (PoCL 3.1) that prepare their devices when they are first asked for, without a lock.
static PREPARING: Mutex<()> = Mutex::new(());

/// The library and the device that was chosen.
pub(crate) struct Driver {
    library: Rc<OpenClLibrary>,
    device: Handle,
    name: String,
    extensions: String,
}

impl Driver {
    /// Loads the library and chooses a device; the error says what is missing.
    pub(crate) fn load(number: Option<usize>) -> Result<Driver, String> {
        let _preparing = PREPARING.lock().unwrap_or_else(PoisonError::into_inner);
        let library = Rc::new(OpenClLibrary::load()?);
        let devices = all_devices(&library);
        let is_gpu = |device: &&Handle| {
            let kind = info(&library, **device, number::DEVICE_TYPE);
            word(&kind) & number::DEVICE_TYPE_GPU != 0
        };
        let device = match number {
            Some(number) => devices.get(number).copied(),
            None => devices.iter().find(is_gpu).or(devices.first()).copied(),
        };
        let Some(device) = device else {
            return Err(match (devices.len(), number) {
                (count, Some(number)) if count > 0 => {
                    format!("there is no device {number}: OpenCL has {count}, counted from 0")
                }
                _ => "OpenCL's library is there, but has no device".to_owned(),
            });
        };
        let text = |kind| {
            let bytes = info(&library, device, kind);
            String::from_utf8_lossy(&bytes)
                .trim_end_matches('\0')
                .to_owned()
        };
        let (name, extensions) = (text(number::DEVICE_NAME), text(number::DEVICE_EXTENSIONS));
        Ok(Driver {
            library,
            device,
            name,
            extensions,
        })
    }

    fn has(&self, extension: &str) -> bool {
        self.extensions
            .split_whitespace()
            .any(|other| other == extension)
    }

    pub(crate) fn abilities(&self) -> Abilities {
        let group = info(
            &self.library,
            self.device,
            number::DEVICE_MAX_WORK_GROUP_SIZE,
        );
        let units = info(&self.library, self.device, number::DEVICE_MAX_COMPUTE_UNITS);
        Abilities {
            group: word(&group).min(1024) as u32,
            units: word(&units).min(1024) as u32,
            // Since OpenCL 1.1 every device compares and exchanges 32 bits.
            atomic_f32: true,
            atomic_f64: self.has("cl_khr_int64_base_atomics"),
            exchange: false,
        }
    }

    /// Compiles kernels, and makes a queue and buffers of these sizes.
    pub(crate) fn queue(
        self,
        source: &str,
        program: &GpuProgram,
        sizes: &[usize],
    ) -> Result<Queue, Error> {
        if source.contains("double") && !self.has("cl_khr_fp64") {
            return Err(Error::Compile(format!(
                "the graph computes with f64, which the device {} does not have",
                self.name
            )));
        }
        let local = word(&info(
            &self.library,
            self.device,
            number::DEVICE_LOCAL_MEM_SIZE,
        ));
        if let Some(kernel) = program.kernels.iter().find(|k| k.local as u64 > local) {
            let (name, bytes) = (&kernel.name, kernel.local);
            return Err(Error::Compile(format!(
                "the kernel {name} needs {bytes} bytes of local memory; the device {} has {local}",
                self.name
            )));
        }
        let mut status = 0;
        // SAFETY: the device is one of the library's; there are no properties and no callback.
        let context = unsafe {
            (self.library.clCreateContext)(null(), 1, &self.device, null(), null_mut(), &mut status)
        };
        check("clCreateContext", status)?;
        let mut queue = Queue {
            driver: self,
            context,
            queue: null_mut(),
            program: null_mut(),
            kernels: Vec::new(),
            description: program.describe(),
            buffers: Vec::new(),
            writes: VecDeque::new(),
            marks: Vec::new(),
        };
        queue.fill(source, program, sizes)?;
        Ok(queue)
    }
}

fn all_devices(library: &OpenClLibrary) -> Vec<Handle> {
    let mut platforms = [null_mut(); 16];
    let mut count = 0;
    // SAFETY: there is room for 16. Without a platform it is an error, and the count stays zero.
    unsafe { (library.clGetPlatformIDs)(16, platforms.as_mut_ptr(), &mut count) };
    let mut all = Vec::new();
    for &platform in platforms.iter().take(count as usize) {
        let mut devices = [null_mut(); 16];
        let mut count = 0;
        // SAFETY: as above.
        unsafe {
            (library.clGetDeviceIDs)(
                platform,
                number::DEVICE_TYPE_ALL,
                16,
                devices.as_mut_ptr(),
                &mut count,
            )
        };
        all.extend(devices.iter().take(count as usize));
    }
    all
}

/// What is known of a device; empty if it is not.
fn info(library: &OpenClLibrary, device: Handle, kind: u32) -> Vec<u8> {
    let mut size = 0;
    // SAFETY: first the size is asked for, then there is room for it.
    unsafe {
        (library.clGetDeviceInfo)(device, kind, 0, null_mut(), &mut size);
        let mut bytes = vec![0u8; size];
        let to = bytes.as_mut_ptr().cast();
        match (library.clGetDeviceInfo)(device, kind, size, to, null_mut()) {
            0 => bytes,
            _ => Vec::new(),
        }
    }
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let size = bytes.len().min(8);
    word[..size].copy_from_slice(&bytes[..size]);
    u64::from_le_bytes(word)
}

fn check(what: &str, status: i32) -> Result<(), Error> {
    match status {
        0 => Ok(()),
        _ => Err(Error::Device(format!(
            "OpenCL's {what} gave the error {status}"
        ))),
    }
}

/// A kernel with its index space.
struct Launchable {
    kernel: Handle,
    groups: usize,
    items: usize,
}

/// A queue that runs everything in order, with all that it needs.
pub(crate) struct Queue {
    driver: Driver,
    context: Handle,
    queue: Handle,
    program: Handle,
    kernels: Vec<Launchable>,
    /// What the report says of the kernels.
    description: String,
    buffers: Vec<Handle>,
    /// Bytes that are being written.
    writes: VecDeque<(Handle, Vec<u8>)>,
    /// Events that say when they happened.
    marks: Vec<Handle>,
}

/// Bytes that are being read. They are waited for before they go away.
pub(crate) struct Reading {
    library: Rc<OpenClLibrary>,
    event: Handle,
    bytes: Vec<u8>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        // SAFETY: the event is of a read into `bytes`, which must not go away before.
        unsafe {
            (self.library.clWaitForEvents)(1, &self.event);
            (self.library.clReleaseEvent)(self.event);
        }
    }
}

impl Queue {
    fn library(&self) -> &OpenClLibrary {
        &self.driver.library
    }

    fn fill(&mut self, source: &str, program: &GpuProgram, sizes: &[usize]) -> Result<(), Error> {
        let mut status = 0;
        // SAFETY: context and device are valid.
        self.queue = unsafe {
            (self.library().clCreateCommandQueue)(
                self.context,
                self.driver.device,
                number::QUEUE_PROFILING_ENABLE,
                &mut status,
            )
        };
        check("clCreateCommandQueue", status)?;
        for &size in sizes {
            // SAFETY: the context is valid; the memory is the driver's.
            let buffer = unsafe {
                (self.library().clCreateBuffer)(
                    self.context,
                    number::MEM_READ_WRITE,
                    size,
                    null_mut(),
                    &mut status,
                )
            };
            check("clCreateBuffer", status)?;
            self.buffers.push(buffer);
        }
        let (text, length) = (source.as_ptr().cast(), source.len());
        // SAFETY: one text of this length.
        self.program = unsafe {
            (self.library().clCreateProgramWithSource)(self.context, 1, &text, &length, &mut status)
        };
        check("clCreateProgramWithSource", status)?;
        self.build(source)?;
        for kernel in &program.kernels {
            let launchable = self.find(kernel)?;
            self.kernels.push(launchable);
        }
        Ok(())
    }

    fn build(&self, source: &str) -> Result<(), Error> {
        let (library, device) = (self.library(), self.driver.device);
        let options = c"-cl-std=CL1.2";
        let _preparing = PREPARING.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: program and device are valid; there is no callback.
        let status = unsafe {
            (library.clBuildProgram)(
                self.program,
                1,
                &device,
                options.as_ptr(),
                null(),
                null_mut(),
            )
        };
        if status == 0 {
            return Ok(());
        }
        let mut size = 0;
        // SAFETY: first the size is asked for, then there is room for it.
        let log = unsafe {
            let kind = number::PROGRAM_BUILD_LOG;
            (library.clGetProgramBuildInfo)(self.program, device, kind, 0, null_mut(), &mut size);
            let mut log = vec![0u8; size];
            let to = log.as_mut_ptr().cast();
            (library.clGetProgramBuildInfo)(self.program, device, kind, size, to, null_mut());
            log
        };
        let log = String::from_utf8_lossy(&log);
        Err(Error::Compile(format!(
            "the driver of {} refuses the kernels (a bug in Ferrozyme): {log}\n{source}",
            self.driver.name
        )))
    }

    fn find(&self, kernel: &Kernel) -> Result<Launchable, Error> {
        let name = CString::new(kernel_name(&kernel.name)).unwrap_or_default();
        let mut status = 0;
        // SAFETY: the program was built.
        let handle =
            unsafe { (self.library().clCreateKernel)(self.program, name.as_ptr(), &mut status) };
        check("clCreateKernel", status)?;
        Ok(Launchable {
            kernel: handle,
            groups: kernel.groups as usize,
            items: kernel.items as usize,
        })
    }

    /// Waits for writes until no more than a number are under way.
    fn reap(&mut self, rest: usize) -> Result<(), Error> {
        while self.writes.len() > rest {
            let Some((event, _bytes)) = self.writes.pop_front() else {
                break;
            };
            // SAFETY: the event is of a write of `_bytes`, which live until here.
            unsafe {
                check(
                    "clWaitForEvents",
                    (self.library().clWaitForEvents)(1, &event),
                )?;
                (self.library().clReleaseEvent)(event);
            }
        }
        Ok(())
    }

    fn set_argument<T>(&self, kernel: Handle, position: usize, value: &T) -> Result<(), Error> {
        let pointer = std::ptr::from_ref(value).cast::<c_void>();
        // SAFETY: the value has the size of the kernel's parameter: a buffer or an offset.
        let status = unsafe {
            (self.library().clSetKernelArg)(kernel, position as u32, size_of::<T>(), pointer)
        };
        check("clSetKernelArg", status)
    }
}

impl Device for Queue {
    type Pending = Reading;

    fn write(&mut self, to: Place, bytes: Vec<u8>) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut event = null_mut();
        // SAFETY: `bytes` live until the event has happened, and fit into the buffer.
        let status = unsafe {
            (self.library().clEnqueueWriteBuffer)(
                self.queue,
                self.buffers[to.buffer],
                0,
                to.offset,
                bytes.len(),
                bytes.as_ptr().cast(),
                0,
                null(),
                &mut event,
            )
        };
        check("clEnqueueWriteBuffer", status)?;
        self.writes.push_back((event, bytes));
        self.reap(UNDER_WAY)
    }

    fn read(&self, from: Place, bytes: usize) -> Result<Reading, Error> {
        let mut bytes = vec![0u8; bytes.max(1)];
        let mut event = null_mut();
        // SAFETY: `Reading` keeps the bytes until the event has happened.
        let status = unsafe {
            (self.library().clEnqueueReadBuffer)(
                self.queue,
                self.buffers[from.buffer],
                0,
                from.offset,
                bytes.len(),
                bytes.as_mut_ptr().cast(),
                0,
                null(),
                &mut event,
            )
        };
        check("clEnqueueReadBuffer", status)?;
        // SAFETY: the queue is valid. Without it the driver might wait for more work.
        check("clFlush", unsafe { (self.library().clFlush)(self.queue) })?;
        Ok(Reading {
            library: self.driver.library.clone(),
            event,
            bytes,
        })
    }

    fn wait(&self, mut pending: Reading) -> Result<Vec<u8>, Error> {
        // SAFETY: the event is valid.
        let status = unsafe { (self.library().clWaitForEvents)(1, &pending.event) };
        check("clWaitForEvents", status)?;
        Ok(std::mem::take(&mut pending.bytes))
    }

    fn copy(&mut self, to: Place, from: Place, bytes: usize) -> Result<(), Error> {
        // SAFETY: both places are in their buffers and do not overlap.
        let status = unsafe {
            (self.library().clEnqueueCopyBuffer)(
                self.queue,
                self.buffers[from.buffer],
                self.buffers[to.buffer],
                from.offset,
                to.offset,
                bytes,
                0,
                null(),
                null_mut(),
            )
        };
        check("clEnqueueCopyBuffer", status)
    }

    fn set(&mut self, to: Place, value: i32) -> Result<(), Error> {
        // SAFETY: the pattern is copied by the call.
        let status = unsafe {
            (self.library().clEnqueueFillBuffer)(
                self.queue,
                self.buffers[to.buffer],
                std::ptr::from_ref(&value).cast(),
                4,
                to.offset,
                4,
                0,
                null(),
                null_mut(),
            )
        };
        check("clEnqueueFillBuffer", status)
    }

    fn launch(&mut self, kernel: usize, places: &[Place]) -> Result<(), Error> {
        let Launchable {
            kernel,
            groups,
            items,
        } = self.kernels[kernel];
        for (position, place) in places.iter().enumerate() {
            self.set_argument(kernel, 2 * position, &self.buffers[place.buffer])?;
            self.set_argument(kernel, 2 * position + 1, &(place.offset as u64))?;
        }
        // SAFETY: all arguments are set; the size of the groups is one that the device can run.
        let status = unsafe {
            (self.library().clEnqueueNDRangeKernel)(
                self.queue,
                kernel,
                1,
                null(),
                &(groups * items),
                &items,
                0,
                null(),
                null_mut(),
            )
        };
        check("clEnqueueNDRangeKernel", status)
    }

    fn finish(&mut self) -> Result<(), Error> {
        // SAFETY: the queue is valid.
        check("clFinish", unsafe { (self.library().clFinish)(self.queue) })?;
        self.reap(0)
    }

    fn name(&self) -> String {
        self.driver.name.clone()
    }

    fn mark(&mut self) -> Result<bool, Error> {
        let mut event = null_mut();
        // SAFETY: the queue is valid; a marker without a list waits for all that is queued.
        let status = unsafe {
            (self.library().clEnqueueMarkerWithWaitList)(self.queue, 0, null(), &mut event)
        };
        check("clEnqueueMarkerWithWaitList", status)?;
        self.marks.push(event);
        Ok(true)
    }

    fn take_marks(&mut self) -> Result<Vec<f64>, Error> {
        let marks = std::mem::take(&mut self.marks);
        let mut nanoseconds = Vec::with_capacity(marks.len());
        let mut outcome = Ok(());
        for &mark in &marks {
            let mut time = 0u64;
            // SAFETY: the event is valid and happens; a time is a word. It is not used behind.
            unsafe {
                let status = (self.library().clWaitForEvents)(1, &mark);
                outcome = outcome.and(check("clWaitForEvents", status));
                let status = (self.library().clGetEventProfilingInfo)(
                    mark,
                    number::PROFILING_COMMAND_END,
                    size_of::<u64>(),
                    std::ptr::from_mut(&mut time).cast(),
                    null_mut(),
                );
                outcome = outcome.and(check("clGetEventProfilingInfo", status));
                (self.library().clReleaseEvent)(mark);
            }
            nanoseconds.push(time);
        }
        let first = nanoseconds.first().copied().unwrap_or(0);
        let seconds = |&time: &u64| time.saturating_sub(first) as f64 * 1e-9;
        outcome.map(|()| nanoseconds.iter().map(seconds).collect())
    }

    fn report(&self) -> String {
        format!("{} on {}\n", self.description, self.driver.name)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let library = self.driver.library.clone();
        // SAFETY: all that was made is released once, after everything in the queue is done.
        unsafe {
            if !self.queue.is_null() {
                (library.clFinish)(self.queue);
            }
            for (event, _) in self.writes.drain(..) {
                (library.clReleaseEvent)(event);
            }
            for mark in self.marks.drain(..) {
                (library.clReleaseEvent)(mark);
            }
            for kernel in &self.kernels {
                (library.clReleaseKernel)(kernel.kernel);
            }
            if !self.program.is_null() {
                (library.clReleaseProgram)(self.program);
            }
            for &buffer in &self.buffers {
                (library.clReleaseMemObject)(buffer);
            }
            if !self.queue.is_null() {
                (library.clReleaseCommandQueue)(self.queue);
            }
            (library.clReleaseContext)(self.context);
        }
    }
}
