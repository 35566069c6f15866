// Collectives over TCP, between all ranks of a world or some of them. The cost model (cost_model.h)
// or Options::algorithm chooses the algorithm, which writes a program (plan.h).
//
// Ownership: refers to the world, which outlives it. Thread-safety: one call at a time, and where
// several backends use one world, one call at a time on all of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend.h"
#include "tcp/cost_model.h"
#include "tcp/exchange.h"
#include "tcp/mesh.h"
#include "tcp/plan.h"

namespace muster::collective::tcp {

class TcpBackend : public Backend {
 public:
  enum class Probing { kNow, kNever };

  /// Over all ranks, which construct it at the same time, since they measure their connections. If
  /// that fails, every call returns the failure. Without the measurement the choice of the algorithm
  /// of an all_reduce uses the default costs.
  explicit TcpBackend(World& world, Probing probing = Probing::kNow);

  /// Over some ranks, numbered in the given order; roots and peers of calls are these numbers.
  /// `comparison`, if not null, compares their calls when they wait.
  TcpBackend(World& world, std::vector<int> members, CallComparison* comparison,
             Probing probing = Probing::kNow);

  Status all_reduce(const Call& call, Pieces pieces) override;
  Status reduce_scatter(const Call& call, const std::byte* in, std::byte* out,
                        PerRank counts) override;
  Status all_gather(const Call& call, const std::byte* part, std::byte* all,
                    PerRank bytes) override;
  Status reduce(const Call& call, const std::byte* in, std::byte* out) override;
  Status broadcast(const Call& call, std::byte* data) override;
  Status all_to_all(const Call& call, const std::byte* in, PerRank sent, std::byte* out,
                    PerRank received) override;
  Status barrier(const Call& call) override;
  Status send(const std::byte* data, std::uint64_t bytes, int to) override;
  Status receive(std::byte* data, std::uint64_t bytes, int from) override;
  std::string explain(DataType type, std::uint64_t bytes) const override;

  /// The following calls are parts of `whole`, a call of the world, which the ranks compare and
  /// messages name.
  void speak_for(const Call& whole) { whole_ = whole; }

  /// Null for a backend over some ranks.
  CallComparison* comparison() { return own_comparison_.get(); }

  const Costs& costs() const { return costs_; }

 private:
  Place place() const { return {mesh_.rank(), mesh_.size()}; }
  bool is_alone() const { return mesh_.size() == 1; }
  int streams() const;
  void measure();

  std::vector<Candidate> candidates(DataType type, bool scales_inputs, std::uint64_t bytes) const;
  Status reduce_all(const Call& call, Pieces pieces, std::uint64_t count);
  Status reduce_packed(const Call& call, Pieces pieces, std::uint64_t count);
  Status reduce_in_steps(const Call& call, Pieces pieces, Extent extent, Algorithm algorithm);
  Status reduce_adaptively(const Call& call, Pieces pieces);

  Status run(const Call& call, const Program& program, Memory in, Memory out);
  Status run(const Greeting& greeting, const Program& program, Memory in, Memory out);

  Mesh mesh_;
  std::unique_ptr<CallComparison> own_comparison_ = {};
  CallComparison* comparison_ = nullptr;
  std::optional<Algorithm> forced_;
  Costs costs_ = {};
  Scratch scratch_ = {};
  Scratch packed_ = {};
  std::optional<Call> whole_ = {};
  std::vector<std::uint64_t> sent_to_;  // messages, by member
  std::vector<std::uint64_t> received_from_;
};

}  // namespace muster::collective::tcp
