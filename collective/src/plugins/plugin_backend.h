// A backend over a plug-in, completed by functions of this library.
//
// Before each call all ranks compare their calls over another backend of the same world, the
// bootstrap. Different calls, and ranks that never enter a call, are therefore detected before any
// rank is inside MPI or NCCL, where they would hang.
//
// A reduction that the plug-in does not support, or not with the same bits on all ranks, is
// performed by the library: each rank receives its slice of every input (all_to_all), reduces it in
// the order of the ranks with the library's kernels, and distributes the result (all_gather). That
// moves no more bytes than a ring. Adasum uses the bootstrap.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend.h"
#include "kernels/kernel.h"
#include "plugins/plugin.h"
#include "world/world.h"

namespace muster::collective {

struct PluginOptions {
  /// See MusterPluginWorld; below the range of int, for MPI.
  std::uint64_t most_bytes = std::uint64_t{1} << 30;

  /// The size of the chunks of an exchange, and of its buffer.
  std::uint64_t exchange_bytes = std::uint64_t{4} << 20;

  /// Lists of tensors up to this total size are copied into one buffer, unless the plug-in takes
  /// lists.
  std::uint64_t fusion_bytes = std::uint64_t{1} << 20;
};

class PluginBackend final : public Backend {
 public:
  /// Called on all ranks of `world`, which outlives the backend. `bootstrap` may be null in a world
  /// of one rank.
  ///
  /// Errors: kConfiguration, equal on every rank, naming the rank that failed.
  static Result<std::unique_ptr<PluginBackend>> open(World& world, const MusterPlugin& plugin,
                                                     std::unique_ptr<Backend> bootstrap,
                                                     PluginOptions options = {});
  ~PluginBackend() override;

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

 private:
  /// The execution of a reduction.
  enum class Way {
    kPlugin,     // by the plug-in
    kScaled,     // by the plug-in, with a pass of the library before and after
    kExchanged,  // by the library
  };

  PluginBackend(World& world, const MusterPlugin& plugin, std::unique_ptr<Backend> bootstrap,
                PluginOptions options);

  MusterPluginWorld place();
  int gather(const void* part, std::uint64_t bytes, void* all);
  int keep_waiting();

  /// Compares the call with those of all ranks, and starts to watch it.
  Status begin(const Call& call);
  Status outcome(int code);
  Status fail(Error error);

  bool goes_elsewhere(const Call& call, bool on_device) const;
  Result<Way> way_of(const Call& call, bool on_device) const;
  bool is_device(const void* data) const { return plugin_.is_device(state_, data) != 0; }
  Status run(const Call& call, Way way, const MusterPluginPiece& piece);
  Status run_packed(const Call& call, Way way, Pieces pieces);
  Status run_scaled(const Call& call, const MusterPluginPiece& piece);
  Status exchange(const Call& call, const std::byte* in, std::byte* out, std::uint64_t count);
  Status exchange_chunk(const Call& call, const std::byte* in, std::byte* out, std::uint64_t count);
  Status check_lengths(PerRank sent, PerRank received);

  std::size_t size() const { return static_cast<std::size_t>(world_.size); }
  std::size_t rank() const { return static_cast<std::size_t>(world_.rank); }

  World& world_;
  const MusterPlugin& plugin_;
  std::unique_ptr<Backend> bootstrap_;
  const PluginOptions options_;
  void* state_ = nullptr;

  std::string waiting_for_;  // the pending call, for messages
  std::chrono::steady_clock::time_point began_;
  std::optional<Monitor::Watch> watch_;

  std::vector<std::byte> inputs_;   // parts of all ranks, to be reduced
  std::vector<std::byte> results_;  // of a reduce, on ranks that are not the root
  std::vector<std::byte> packed_;
};

/// Exchanges the status of all ranks over `bootstrap` (null in a world of one rank). Returns the
/// error of the lowest rank that has one, on every rank.
Status agree(const World& world, Backend* bootstrap, const Status& own);

}  // namespace muster::collective
