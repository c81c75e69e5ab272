//! Races between the bodies of a team: two bodies touch the same byte, one of them writes, and not both add to it atomically.
//!
//! Bodies run one after the other here, so that a race makes no difference to results. It is a fault nevertheless: backends run bodies at the same time. Bodies of a team in a body
//! of another one count as parts of that body.

use super::Machine;
use super::datum::Pointer;
use super::fault::FaultKind;
use super::memory::Memory;
use super::promises::Touch;
use rustc_hash::FxHashMap;

/// The team whose bodies are being carried out.
pub(super) struct Team {
    /// How many frames there were before it.
    depth: usize,
    /// How many bodies have not ended.
    left: usize,
    /// The number of the body that is being carried out, from 1.
    body: u32,
    /// The bytes that were touched so far.
    touched: FxHashMap<u64, Touched>,
}

/// Who touched a byte: the number of a body, 0 for nobody, [`SEVERAL`] for more than one.
#[derive(Clone, Copy, Default)]
struct Touched {
    readers: u32,
    writer: u32,
    adders: u32,
}

const SEVERAL: u32 = u32::MAX;

impl Machine<'_> {
    /// Notes that a team of so many bodies begins, unless this is in a body of another one.
    pub(super) fn note_team(&mut self, bodies: usize) {
        if self.team.is_none() && bodies > 1 {
            self.team = Some(Box::new(Team {
                depth: self.frames.len(),
                left: bodies,
                body: 1,
                touched: FxHashMap::default(),
            }));
        }
    }

    /// Notes that a body of some team has ended, whose frame is gone.
    pub(super) fn note_end_of_body(&mut self) {
        let Some(team) = &mut self.team else {
            return;
        };
        if self.frames.len() == team.depth + team.left - 1 {
            team.left -= 1;
            team.body += 1;
            if team.left == 0 {
                self.team = None;
            }
        }
    }

    /// Checks an access: that no active call has promised not to do this, and that no other body of a team gets in its way.
    pub(super) fn touch(&mut self, at: u64, bytes: u64, touch: Touch) -> Result<(), FaultKind> {
        match touch {
            Touch::Read | Touch::Write => self.check_touch(at, touch)?,
            Touch::Add => {
                self.check_touch(at, Touch::Read)?;
                self.check_touch(at, Touch::Write)?;
            }
        }
        match &mut self.team {
            Some(team) => team.note(&self.memory, at, bytes, touch),
            None => Ok(()),
        }
    }
}

impl Team {
    fn note(
        &mut self,
        memory: &Memory,
        at: u64,
        bytes: u64,
        touch: Touch,
    ) -> Result<(), FaultKind> {
        // What cannot be is another fault.
        let reach = memory.bytes_from(Pointer(at)).unwrap_or(0).min(bytes);
        for address in at..at + reach {
            let touched = self.touched.entry(address).or_default();
            let others = |who: u32| who != 0 && who != self.body;
            let is_race = others(touched.writer)
                || touch != Touch::Add && others(touched.adders)
                || touch != Touch::Read && others(touched.readers);
            if is_race {
                return Err(FaultKind::Race {
                    address: Pointer(address),
                });
            }
            let who = match touch {
                Touch::Read => &mut touched.readers,
                Touch::Write => &mut touched.writer,
                Touch::Add => &mut touched.adders,
            };
            *who = match *who {
                0 => self.body,
                known if known == self.body => known,
                _ => SEVERAL,
            };
        }
        Ok(())
    }
}
