// One plan on its way: which bytes may be sent now, where the next received ones go, and the
// reduction in between. A pass does no I/O: who drives it moves the bytes, in pieces as they come.
//
//   while (!pass.done()) {
//     pass.sent(write(pass.to_send()));
//     pass.received(read(pass.to_receive()));
//   }
//
// The stream begins with the header of the call. Once the left neighbour's is there, it stands in
// left_header(), and the driver compares it before it goes on.
//
// Ownership: refers to the plan, its buffers and the scratch, which outlive it.
#pragma once

#include <optional>
#include <span>

#include "ring/call.h"
#include "ring/plan.h"

namespace muster::collective {

class Pass {
 public:
  /// `scratch` receives what is to be reduced: aligned for any type, at least 8 bytes; the larger,
  /// the fewer system calls, until it falls out of the cache.
  Pass(Place place, const CallHeader& header, const Plan& plan, std::span<std::byte> scratch);

  /// The bytes that may go out now; empty while they wait for received ones, and at the end.
  ByteView to_send() const;
  void sent(std::size_t bytes);

  /// Room for the next bytes from the left; empty once all are there.
  std::span<std::byte> to_receive();
  void received(std::size_t bytes);

  bool all_sent() const;
  bool all_received() const;
  bool done() const { return all_sent() && all_received(); }

  /// The left neighbour's header, as soon as it is complete.
  const CallHeader* left_header() const;

 private:
  void land_reduced(std::size_t bytes);
  void advance(std::uint64_t bytes);

  Place place_;
  CallHeader header_;
  const Plan& plan_;
  std::span<std::byte> scratch_;

  std::size_t header_sent_ = 0;
  std::size_t outgoing_ = 0;         // index of the piece that is being sent
  std::uint64_t outgoing_done_ = 0;  // bytes of it that are out
  std::uint64_t total_sent_ = 0;     // without the header

  CallHeader left_header_ = {};
  std::size_t header_received_ = 0;
  std::size_t incoming_ = 0;         // index of the piece that is being received
  std::uint64_t incoming_done_ = 0;  // bytes of it that have landed
  std::uint64_t total_landed_ = 0;   // without the header
  std::size_t scratch_filled_ = 0;   // bytes that wait for the rest of their element
};

}  // namespace muster::collective
