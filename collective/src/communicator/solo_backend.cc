#include "communicator/solo_backend.h"

namespace muster::collective {

Status SoloBackend::move(const std::byte* from, std::byte* to, std::uint64_t bytes) {
  if (from != to && bytes > 0) std::memcpy(to, from, bytes);
  return {};
}

// Adasum of one vector is that vector; its scales still count.
Status SoloBackend::all_reduce(const Call& call, Pieces pieces) {
  Reduction reduction = call.reduction;
  if (reduction.op == ReduceOp::kAdasum) reduction.op = ReduceOp::kSum;
  const Kernel kernel = Kernel::of(spec_of(call.type, reduction, 1));
  for (const Piece& piece : pieces) {
    if (piece.count > 0) kernel(&piece.in, 1, piece.out, piece.count);
  }
  return {};
}

Status SoloBackend::all_to_all(const Call&, const std::byte* in, PerRank sent, std::byte* out,
                               PerRank received) {
  if (sent[0] == received[0]) return move(in, out, sent[0]);
  return Error{ErrorCode::kMismatch, "rank 0 sends " + std::to_string(sent[0]) +
                                         " bytes to itself, and expects " +
                                         std::to_string(received[0])};
}

Status SoloBackend::send(const std::byte* data, std::uint64_t bytes, int) {
  mail_.emplace_back(data, data + bytes);
  return {};
}

Status SoloBackend::receive(std::byte* data, std::uint64_t bytes, int) {
  if (mail_.empty()) {
    return Error{ErrorCode::kMismatch, "rank 0 receives from itself what it has not sent"};
  }
  const std::vector<std::byte> message = std::move(mail_.front());
  mail_.erase(mail_.begin());
  if (message.size() != bytes) {
    return Error{ErrorCode::kMismatch, "rank 0 sends " + std::to_string(message.size()) +
                                           " bytes to itself, and receives " +
                                           std::to_string(bytes)};
  }
  return move(message.data(), data, bytes);
}

}  // namespace muster::collective
