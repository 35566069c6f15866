#include "schedule/trial.h"

namespace muster::schedule {

Trial::Kind Trial::inverse(Kind kind) {
  switch (kind) {
    case Kind::kBeginRelease:
      return Kind::kUndoBeginRelease;
    case Kind::kUndoBeginRelease:
      return Kind::kBeginRelease;
    case Kind::kReserve:
      return Kind::kUnreserve;
    case Kind::kUnreserve:
      return Kind::kReserve;
    case Kind::kKeep:
      return Kind::kUnkeep;
    case Kind::kUnkeep:
      return Kind::kKeep;
    case Kind::kAllocate:
      return Kind::kRelease;
    case Kind::kRelease:
      break;
  }
  return Kind::kAllocate;
}

void Trial::play(Kind kind, const Step& step) {
  switch (kind) {
    case Kind::kBeginRelease:
      return pool_.nodes.begin_release(step.booking);
    case Kind::kUndoBeginRelease:
      return pool_.nodes.undo_begin_release(step.booking);
    case Kind::kReserve:
      return pool_.nodes.reserve(step.booking);
    case Kind::kUnreserve:
      return pool_.nodes.unreserve(step.booking);
    case Kind::kKeep:
      return pool_.nodes.keep(step.booking);
    case Kind::kUnkeep:
      return pool_.nodes.unkeep(step.booking);
    case Kind::kAllocate:
      return pool_.ledger.allocate(step.leaf, step.amounts, step.preemptible);
    case Kind::kRelease:
      return pool_.ledger.release(step.leaf, step.amounts, step.preemptible);
  }
}

void Trial::take(Step step) {
  play(step.kind, step);
  journal_.push_back(step);
}

void Trial::rollback(size_t mark) {
  while (journal_.size() > mark) {
    play(inverse(journal_.back().kind), journal_.back());
    journal_.pop_back();
  }
}

void Trial::begin_release(const Booking& booking) {
  if (booking.node >= 0) take({.kind = Kind::kBeginRelease, .booking = booking});
}

void Trial::undo_begin_release(const Booking& booking) {
  if (booking.node >= 0) take({.kind = Kind::kUndoBeginRelease, .booking = booking});
}

void Trial::unreserve(const Booking& booking) {
  take({.kind = Kind::kUnreserve, .booking = booking});
}

void Trial::keep(const Booking& booking) {
  take({.kind = Kind::kKeep, .booking = booking});
}

void Trial::unkeep(const Booking& booking) {
  take({.kind = Kind::kUnkeep, .booking = booking});
}

base::Result<std::vector<Booking>, Shortage> Trial::place_later(
    const Gang& gang, const std::vector<int>& counts, Packing packing,
    const std::vector<Booking>& beside) {
  auto placed = pool_.nodes.place(
      gang, counts, {.room = FreeWhen::kLater, .packing = packing, .with_amounts = false}, beside);
  if (placed) {
    for (const Booking& booking : *placed) {
      journal_.push_back({.kind = Kind::kReserve, .booking = booking});
    }
  }
  return placed;
}

void Trial::allocate(ProjectIndex leaf, const Amounts& amounts, bool preemptible) {
  take({.kind = Kind::kAllocate, .leaf = leaf, .amounts = amounts, .preemptible = preemptible});
}

void Trial::release(ProjectIndex leaf, const Amounts& amounts, bool preemptible) {
  take({.kind = Kind::kRelease, .leaf = leaf, .amounts = amounts, .preemptible = preemptible});
}

void Trial::lift_books() {
  for (const Step& step : journal_) {
    if (step.kind == Kind::kAllocate || step.kind == Kind::kRelease) play(inverse(step.kind), step);
  }
}

void Trial::restore_books() {
  for (const Step& step : journal_) {
    if (step.kind == Kind::kAllocate || step.kind == Kind::kRelease) play(step.kind, step);
  }
}

}  // namespace muster::schedule
