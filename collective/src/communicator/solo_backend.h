// A world of one: nothing moves between ranks, but inputs still become outputs and scales count.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "backend.h"
#include "kernels/kernel.h"

namespace muster::collective {

class SoloBackend final : public Backend {
 public:
  Status all_reduce(const Call& call, Pieces pieces) override;
  Status reduce_scatter(const Call& call, const std::byte* in, std::byte* out, PerRank) override {
    return reduce(call, in, out);
  }
  Status all_gather(const Call&, const std::byte* part, std::byte* all, PerRank bytes) override {
    return move(part, all, bytes[0]);
  }
  Status reduce(const Call& call, const std::byte* in, std::byte* out) override {
    const Piece piece{in, out, call.count};
    return all_reduce(call, {&piece, 1});
  }
  Status broadcast(const Call&, std::byte*) override { return {}; }
  Status all_to_all(const Call&, const std::byte* in, PerRank sent, std::byte* out,
                    PerRank received) override;
  Status barrier(const Call&) override { return {}; }
  Status send(const std::byte* data, std::uint64_t bytes, int) override;
  Status receive(std::byte* data, std::uint64_t bytes, int) override;
  std::string explain(DataType, std::uint64_t) const override { return "a world of one: a copy"; }

 private:
  static Status move(const std::byte* from, std::byte* to, std::uint64_t bytes);

  std::vector<std::vector<std::byte>> mail_ = {};  // sent to itself, not received yet
};

}  // namespace muster::collective
