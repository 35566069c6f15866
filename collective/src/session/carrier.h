// Carries out what has been agreed on, over the backend: it numbers the calls, hands the tensors of
// a batch over as one list, lets room be allocated, and stands in with zeros where this rank has
// joined.
//
// Thread-safety: one thread at a time.
#pragma once

#include <span>
#include <vector>

#include "session/base.h"
#include "session/operation.h"
#include "session/protocol.h"

namespace muster::collective::session {

/// One operation of a batch. `operation` is null where this rank has joined.
struct Item {
  Operation* operation = nullptr;
  const Agreed* agreed = nullptr;
  Status outcome = {};
};

class Carrier {
 public:
  /// `base` outlives it.
  explicit Carrier(SessionBase& base);

  /// All of a type and reduction where there are two or more. Fills in the outcomes. Items that
  /// have an error in `agreed` are not carried out.
  void carry_out(std::span<Item> items);

  /// The number of the last call.
  std::uint64_t calls() const { return calls_; }

 private:
  Status all_reduce(std::span<Item> items);
  Status reduce_scatter(Item& item);
  Status all_gather(Item& item);
  Status all_to_all(Item& item);
  Call numbered(Call call);
  void add_zeros(const Request& request, std::byte*& place);
  std::byte* room_for(Operation& operation, std::span<const std::uint64_t> bytes, Status& status);

  SessionBase& base_;
  Backend& backend_;
  std::uint64_t calls_;
  std::vector<Piece> pieces_;
  std::vector<std::uint64_t> lengths_;
  std::vector<std::byte> zeros_;    // of a rank that has joined
  std::vector<std::byte> nowhere_;  // for what an allocate() without room should have taken
};

}  // namespace muster::collective::session
