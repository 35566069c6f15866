// Collectives over TCP, between all ranks of a world or some of them. How each is carried out is a
// program (plan_reduce.h, plan_move.h); which one, the cost model says (cost_model.h), or
// Options::algorithm.
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
#include "tcp/plan_reduce.h"
#include "tcp/roll_call.h"

namespace muster::collective::tcp {

class TcpBackend : public Backend {
 public:
  /// Of all ranks. They construct it at the same time, as they measure their connections; where
  /// that fails, every call returns the failure.
  explicit TcpBackend(World& world);

  /// Of some ranks, which are numbered in the order given: roots and peers of calls are such
  /// numbers. What they wait for is told by `roll_call`, if there is one.
  TcpBackend(World& world, std::vector<int> members, RollCall* roll_call);

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

  /// The calls that follow are parts of `whole`, a call of the world: it is what the ranks compare
  /// and what messages name.
  void speak_for(const Call& whole) { whole_ = whole; }

  /// Null for a backend of some ranks.
  RollCall* roll_call() { return own_roll_call_.get(); }

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
  std::unique_ptr<RollCall> own_roll_call_ = {};
  RollCall* roll_call_ = nullptr;
  std::optional<Algorithm> forced_;
  Costs costs_ = {};
  Scratch scratch_ = {};
  Scratch packed_ = {};
  std::optional<Call> whole_ = {};
  std::vector<std::uint64_t> sent_to_;  // messages, by member
  std::vector<std::uint64_t> received_from_;
};

}  // namespace muster::collective::tcp
