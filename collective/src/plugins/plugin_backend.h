// A backend of what a plug-in can do and what this library does for it.
//
// Before each call all ranks show what they ask for over another backend of the same world, the
// bootstrap: so calls that differ are found before any rank is inside MPI or NCCL, where a
// difference is a hang, and so is a rank that never comes.
//
// A reduction that the plug-in does not know, or not with the same bits for all, goes another way:
// each rank gets its share of everybody's input (all_to_all), reduces it in the order of the ranks
// with our own kernels, and hands it on (all_gather). That moves no more bytes than a ring. Adasum
// is left to the bootstrap.
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
  /// See MusterPluginWorld: below what an int can count, for MPI.
  std::uint64_t most_bytes = std::uint64_t{1} << 30;

  /// How much of a buffer is exchanged at a time, and lies in a buffer of ours meanwhile.
  std::uint64_t exchange_bytes = std::uint64_t{4} << 20;

  /// Tensors of a list up to this size together are copied into one buffer.
  std::uint64_t fusion_bytes = std::uint64_t{1} << 20;
};

class PluginBackend final : public Backend {
 public:
  /// On all ranks of `world`, which outlives the backend. `bootstrap` may be null in a world of
  /// one.
  ///
  /// Errors: kConfiguration, the same on every rank, naming the rank that could not.
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
  /// How a reduction is carried out.
  enum class Way {
    kPlugin,     // by the plug-in
    kScaled,     // by the plug-in, with a pass of ours before and after
    kExchanged,  // by ourselves
  };

  PluginBackend(World& world, const MusterPlugin& plugin, std::unique_ptr<Backend> bootstrap,
                PluginOptions options);

  MusterPluginWorld place();
  int gather(const void* part, std::uint64_t bytes, void* all);
  int keep_waiting();

  /// Where all ranks make the same call, goes on to watch it.
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

/// All ranks tell each other over `bootstrap` (null in a world of one) whether they can go on: an
/// empty `reason` is yes. The error is the lowest such rank's reason, on every rank.
Status agree(const World& world, Backend* bootstrap, const Status& own);

}  // namespace muster::collective
