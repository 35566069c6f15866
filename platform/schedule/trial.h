// A transaction on a pool's bookings, with which an action tries something before it decides.
//
// Every change is applied to the pool's nodes and ledger at once and recorded in a journal, which
// rollback() undoes. The destructor rolls back what was not committed.
#pragma once

#include <vector>

#include "schedule/pool.h"

namespace muster::schedule {

class Trial {
 public:
  explicit Trial(Pool& pool) : pool_(pool) {}
  ~Trial() { rollback(0); }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  size_t mark() const { return journal_.size(); }
  void rollback(size_t mark);
  void commit() { journal_.clear(); }

  // Nodes. Bookings on removed nodes are ignored.
  void begin_release(const Booking& booking);
  void undo_begin_release(const Booking& booking);
  void unreserve(const Booking& booking);
  void keep(const Booking& booking);
  void unkeep(const Booking& booking);
  /// Nodes::place() with FreeWhen::kLater and without amounts: reserves the bookings that it finds.
  base::Result<std::vector<Booking>, Shortage> place_later(const Gang& gang,
                                                           const std::vector<int>& counts,
                                                           Packing packing,
                                                           const std::vector<Booking>& beside);

  // Ledger.
  void allocate(ProjectIndex leaf, const Amounts& amounts, bool preemptible);
  void release(ProjectIndex leaf, const Amounts& amounts, bool preemptible);

  /// Undoes all changes of the ledger, and redoes them: to read the ledger as it was before.
  void lift_books();
  void restore_books();

 private:
  enum class Kind : uint8_t {
    kBeginRelease,
    kUndoBeginRelease,
    kReserve,
    kUnreserve,
    kKeep,
    kUnkeep,
    kAllocate,
    kRelease,
  };
  struct Step {
    Kind kind;
    Booking booking;
    ProjectIndex leaf = kNoProject;
    Amounts amounts;
    bool preemptible = true;
  };
  static Kind inverse(Kind kind);
  void play(Kind kind, const Step& step);
  void take(Step step);

  Pool& pool_;
  std::vector<Step> journal_;
};

}  // namespace muster::schedule
