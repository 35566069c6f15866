// A statement of bookings that can be taken back: what an action tries before it decides.
//
// Every change goes to the pool's nodes and books at once, and into a journal; rollback() plays it
// backwards. What is not committed is rolled back at the end.
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

  // Of nodes. Bookings on nodes that are gone change nothing.
  void begin_release(const Booking& booking);
  void undo_begin_release(const Booking& booking);
  void reserve(const Booking& booking);
  void unreserve(const Booking& booking);
  /// Room that is reserved when found.
  base::Result<std::vector<Booking>, Shortage> place_later(const Gang& gang,
                                                           const std::vector<int>& counts,
                                                           Packing packing,
                                                           const std::vector<Booking>& beside);

  // Of the books.
  void allocate(ProjectIndex leaf, const Amounts& amounts, bool preemptible);
  void release(ProjectIndex leaf, const Amounts& amounts, bool preemptible);

  /// As if nothing had been done on the books; then again. For saying how they stood before.
  void lift_books();
  void restore_books();

 private:
  enum class Kind : uint8_t {
    kBeginRelease,
    kUndoBeginRelease,
    kReserve,
    kUnreserve,
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
