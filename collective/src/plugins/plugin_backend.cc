#include "plugins/plugin_backend.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace muster::collective {
namespace {

// A call that takes longer may be waiting for a lost rank, and is watched.
constexpr std::chrono::milliseconds kUnwatchedTime{10};

MusterPluginReduction plugin_reduction_of(DataType type, const Reduction& reduction) {
  return {static_cast<int>(type), static_cast<int>(reduction.op), reduction.prescale,
          reduction.postscale};
}

bool is_wide_float(DataType type) {
  return type == DataType::kFloat32 || type == DataType::kFloat64;
}

}  // namespace

PluginBackend::PluginBackend(World& world, const MusterPlugin& plugin,
                             std::unique_ptr<Backend> bootstrap, PluginOptions options)
    : world_(world), plugin_(plugin), bootstrap_(std::move(bootstrap)), options_(options) {}

PluginBackend::~PluginBackend() {
  if (state_ == nullptr) return;
  plugin_.close(state_, world_.monitor && world_.monitor->failed() ? 1 : 0);
}

Result<std::unique_ptr<PluginBackend>> PluginBackend::open(World& world, const MusterPlugin& plugin,
                                                           std::unique_ptr<Backend> bootstrap,
                                                           PluginOptions options) {
  std::array<char, 512> why = {};
  const auto refused = [&why](bool failed) -> Status {
    if (!failed) return {};
    return Error{ErrorCode::kConfiguration, why.data()};
  };
  const bool unprepared = plugin.prepare(why.data(), why.size()) != 0;
  if (Status all = agree(world, bootstrap.get(), refused(unprepared)); !all) return all.error();

  std::unique_ptr<PluginBackend> backend(
      new PluginBackend(world, plugin, std::move(bootstrap), options));
  backend->began_ = std::chrono::steady_clock::now();
  backend->waiting_for_ = std::string("the start of ") + plugin.name;
  const MusterPluginWorld place = backend->place();
  backend->state_ = plugin.open(&place, why.data(), why.size());
  backend->watch_.reset();
  const Status opened = refused(backend->state_ == nullptr);
  if (Status all = agree(world, backend->bootstrap_.get(), opened); !all) return all.error();
  return backend;
}

MusterPluginWorld PluginBackend::place() {
  return {.rank = world_.rank,
          .size = world_.size,
          .local_rank = world_.size > 1 ? world_.topology.local_rank_of(world_.rank) : 0,
          .most_bytes = options_.most_bytes,
          .all_gather =
              [](void* context, const void* part, std::uint64_t bytes, void* all) {
                return static_cast<PluginBackend*>(context)->gather(part, bytes, all);
              },
          .keep_waiting =
              [](void* context) { return static_cast<PluginBackend*>(context)->keep_waiting(); },
          .context = this};
}

int PluginBackend::gather(const void* part, std::uint64_t bytes, void* all) {
  if (!bootstrap_) {
    std::memcpy(all, part, bytes);
    return 0;
  }
  const std::vector<std::uint64_t> lengths(size(), bytes);
  const Call call{.kind = CallKind::kAllGather, .count = bytes * size()};
  const Status gathered = bootstrap_->all_gather(call, static_cast<const std::byte*>(part),
                                                 static_cast<std::byte*>(all), lengths);
  return gathered ? 0 : 1;
}

int PluginBackend::keep_waiting() {
  if (!world_.monitor) return 1;
  if (world_.monitor->failed()) return 0;
  if (!watch_ && std::chrono::steady_clock::now() - began_ > kUnwatchedTime) {
    watch_.emplace(*world_.monitor, waiting_for_);
  }
  return 1;
}

Status PluginBackend::begin(const Call& call) {
  if (bootstrap_) {
    if (Status met = bootstrap_->barrier(call); !met) return met;
  }
  waiting_for_ = to_string(call);
  began_ = std::chrono::steady_clock::now();
  return {};
}

Status PluginBackend::outcome(int code) {
  watch_.reset();
  if (code == 0) return {};
  return fail(
      {ErrorCode::kSystem, std::string(plugin_.name) + " failed in " + waiting_for_ + " on " +
                               (world_.size > 1 ? world_.name_of(world_.rank) : "the only rank") +
                               ": " + plugin_.last_error(state_)});
}

Status PluginBackend::fail(Error error) {
  return world_.monitor ? world_.monitor->fail(std::move(error)) : error;
}

// Adasum needs whole tensors and pairs of ranks, which the bootstrap supports.
bool PluginBackend::goes_elsewhere(const Call& call, bool on_device) const {
  return call.reduction.op == ReduceOp::kAdasum && bootstrap_ && !on_device;
}

Result<PluginBackend::Way> PluginBackend::way_of(const Call& call, bool on_device) const {
  const MusterPluginReduction whole = plugin_reduction_of(call.type, call.reduction);
  if (plugin_.reduces(state_, &whole) != 0) return Way::kPlugin;
  if (on_device) {
    return Error{ErrorCode::kBadArgument,
                 std::string(plugin_.name) + " cannot carry out a " +
                     std::string(to_string(call.reduction.op)) + " of " +
                     std::string(to_string(call.type)) +
                     " with these scales in the memory of a device",
                 "reduce it in host memory"};
  }
  // Scaling before or after the reduction equals scaling within it only if that rounds nothing in
  // addition: not for 16-bit floats, and for integers only with the division.
  const bool is_scaled = call.reduction.prescale != 1 || call.reduction.postscale != 1;
  const bool has_sum =
      call.reduction.op == ReduceOp::kAverage || call.reduction.op == ReduceOp::kSum;
  const MusterPluginReduction plain = plugin_reduction_of(call.type, ReduceOp::kSum);
  if (has_sum && (is_wide_float(call.type) || !is_scaled) && plugin_.reduces(state_, &plain) != 0) {
    return Way::kScaled;
  }
  return Way::kExchanged;
}

Status PluginBackend::all_reduce(const Call& call, Pieces pieces) {
  bool on_device = false;
  for (const Piece& piece : pieces) {
    if (piece.count > 0) on_device = on_device || is_device(piece.in) || is_device(piece.out);
  }
  if (goes_elsewhere(call, on_device)) return bootstrap_->all_reduce(call, pieces);
  if (Status met = begin(call); !met) return met;
  const Result<Way> way = way_of(call, on_device);
  if (!way) return fail(way.error());
  if (*way == Way::kPlugin && (plugin_.takes_lists != 0 || pieces.size() == 1)) {
    std::vector<MusterPluginPiece> list;
    for (const Piece& piece : pieces) list.push_back({piece.in, piece.out, piece.count});
    const MusterPluginReduction reduction = plugin_reduction_of(call.type, call.reduction);
    return outcome(plugin_.all_reduce(state_, list.data(), list.size(), &reduction));
  }
  const std::size_t width = size_of(call.type);
  for (std::size_t next = 0; next < pieces.size();) {
    std::size_t end = next + 1;
    std::uint64_t bytes = pieces[next].count * width;
    while (end < pieces.size() && bytes + pieces[end].count * width <= options_.fusion_bytes) {
      bytes += pieces[end++].count * width;
    }
    if (Status done = run_packed(call, *way, pieces.subspan(next, end - next)); !done) return done;
    next = end;
  }
  return {};
}

Status PluginBackend::run_packed(const Call& call, Way way, Pieces pieces) {
  if (pieces.size() == 1) return run(call, way, {pieces[0].in, pieces[0].out, pieces[0].count});
  const std::size_t width = size_of(call.type);
  packed_.resize(options_.fusion_bytes);
  std::uint64_t count = 0;
  for (const Piece& piece : pieces) {
    if (piece.count == 0) continue;
    std::memcpy(packed_.data() + count * width, piece.in, piece.count * width);
    count += piece.count;
  }
  if (Status done = run(call, way, {packed_.data(), packed_.data(), count}); !done) return done;
  count = 0;
  for (const Piece& piece : pieces) {
    if (piece.count == 0) continue;
    std::memcpy(piece.out, packed_.data() + count * width, piece.count * width);
    count += piece.count;
  }
  return {};
}

Status PluginBackend::run(const Call& call, Way way, const MusterPluginPiece& piece) {
  if (way == Way::kScaled) return run_scaled(call, piece);
  if (way == Way::kExchanged) {
    return exchange(call, static_cast<const std::byte*>(piece.in),
                    static_cast<std::byte*>(piece.out), piece.count);
  }
  const MusterPluginReduction reduction = plugin_reduction_of(call.type, call.reduction);
  return outcome(plugin_.all_reduce(state_, &piece, 1, &reduction));
}

Status PluginBackend::run_scaled(const Call& call, const MusterPluginPiece& piece) {
  if (piece.count == 0) return {};
  auto* const out = static_cast<std::byte*>(piece.out);
  const auto* in = static_cast<const std::byte*>(piece.in);
  if (call.reduction.prescale != 1) {
    Kernel::of({.type = call.type, .prescale = call.reduction.prescale})(&in, 1, out, piece.count);
    in = out;
  }
  const MusterPluginPiece plain = {in, out, piece.count};
  const MusterPluginReduction sum = plugin_reduction_of(call.type, ReduceOp::kSum);
  if (Status done = outcome(plugin_.all_reduce(state_, &plain, 1, &sum)); !done) return done;
  const int divisor = call.reduction.op == ReduceOp::kAverage ? world_.size : 1;
  if (call.reduction.postscale == 1 && divisor == 1) return {};
  const std::byte* const sums = out;
  Kernel::of({.type = call.type, .postscale = call.reduction.postscale, .divisor = divisor})(
      &sums, 1, out, piece.count);
  return {};
}

Status PluginBackend::exchange(const Call& call, const std::byte* in, std::byte* out,
                               std::uint64_t count) {
  const std::size_t width = size_of(call.type);
  const std::uint64_t most = std::max<std::uint64_t>(options_.exchange_bytes / width, 1);
  for (std::uint64_t done = 0; done < count; done += most) {
    const std::uint64_t some = std::min(most, count - done);
    if (Status ok = exchange_chunk(call, in + done * width, out + done * width, some); !ok) {
      return ok;
    }
  }
  return {};
}

// After the all_to_all no rank needs this rank's input any more, so `out` may be the same buffer.
Status PluginBackend::exchange_chunk(const Call& call, const std::byte* in, std::byte* out,
                                     std::uint64_t count) {
  const std::size_t width = size_of(call.type);
  std::vector<std::uint64_t> shares(size());
  for (std::size_t r = 0; r < size(); ++r) {
    shares[r] = (count / size() + (r < count % size() ? 1 : 0)) * width;
  }
  const std::uint64_t own = shares[rank()];
  const std::uint64_t before =
      std::accumulate(shares.begin(), shares.begin() + world_.rank, std::uint64_t{0});
  if (inputs_.size() < own * size()) inputs_.resize(own * size());
  const std::vector<std::uint64_t> received(size(), own);
  if (Status ok =
          outcome(plugin_.all_to_all(state_, in, shares.data(), inputs_.data(), received.data()));
      !ok) {
    return ok;
  }
  std::vector<const std::byte*> inputs(size());
  for (std::size_t r = 0; r < size(); ++r) inputs[r] = inputs_.data() + r * own;
  Reduction reduction = call.reduction;
  if (reduction.op == ReduceOp::kAdasum) reduction.op = ReduceOp::kSum;  // of one rank
  const Kernel kernel = Kernel::of(spec_of(call.type, reduction, world_.size));
  kernel(inputs.data(), world_.size, out + before, own / width);
  return outcome(plugin_.all_gather(state_, out + before, out, shares.data()));
}

Status PluginBackend::reduce_scatter(const Call& call, const std::byte* in, std::byte* out,
                                     PerRank counts) {
  const bool on_device = is_device(in) || is_device(out);
  if (goes_elsewhere(call, on_device)) return bootstrap_->reduce_scatter(call, in, out, counts);
  if (Status met = begin(call); !met) return met;
  const Result<Way> way = way_of(call, on_device);
  if (!way) return fail(way.error());
  if (*way == Way::kPlugin && plugin_.reduce_scatter != nullptr) {
    const MusterPluginReduction reduction = plugin_reduction_of(call.type, call.reduction);
    return outcome(plugin_.reduce_scatter(state_, in, out, counts.data(), &reduction));
  }
  const std::size_t width = size_of(call.type);
  std::vector<std::uint64_t> sent(counts.begin(), counts.end());
  for (std::uint64_t& bytes : sent) bytes *= width;
  const std::uint64_t own = sent[rank()];
  std::vector<std::byte> parts(own * size());
  const std::vector<std::uint64_t> received(size(), own);
  if (Status ok =
          outcome(plugin_.all_to_all(state_, in, sent.data(), parts.data(), received.data()));
      !ok || own == 0) {
    return ok;
  }
  std::vector<const std::byte*> inputs(size());
  for (std::size_t r = 0; r < size(); ++r) inputs[r] = parts.data() + r * own;
  Kernel::of(spec_of(call.type, call.reduction, world_.size))(inputs.data(), world_.size, out,
                                                              counts[rank()]);
  return {};
}

Status PluginBackend::reduce(const Call& call, const std::byte* in, std::byte* out) {
  const bool is_root = world_.rank == call.root;
  const bool on_device = is_device(in) || (is_root && is_device(out));
  if (goes_elsewhere(call, on_device)) return bootstrap_->reduce(call, in, out);
  if (Status met = begin(call); !met) return met;
  const Result<Way> way = way_of(call, on_device);
  if (!way) return fail(way.error());
  if (*way == Way::kPlugin) {
    const MusterPluginReduction reduction = plugin_reduction_of(call.type, call.reduction);
    return outcome(plugin_.reduce(state_, in, out, call.count, &reduction, call.root));
  }
  const std::size_t width = size_of(call.type);
  const std::uint64_t most = std::max<std::uint64_t>(options_.exchange_bytes / width, 1);
  if (!is_root) results_.resize(std::min(most, call.count) * width);
  for (std::uint64_t done = 0; done < call.count; done += most) {
    std::byte* const into = is_root ? out + done * width : results_.data();
    const std::uint64_t some = std::min(most, call.count - done);
    if (Status ok = exchange_chunk(call, in + done * width, into, some); !ok) return ok;
  }
  return {};
}

Status PluginBackend::all_gather(const Call& call, const std::byte* part, std::byte* all,
                                 PerRank bytes) {
  if (Status met = begin(call); !met) return met;
  return outcome(plugin_.all_gather(state_, part, all, bytes.data()));
}

Status PluginBackend::broadcast(const Call& call, std::byte* data) {
  if (Status met = begin(call); !met) return met;
  return outcome(plugin_.broadcast(state_, data, call.count, call.root));
}

// The lengths are not part of the call, since they differ between ranks.
Status PluginBackend::check_lengths(PerRank sent, PerRank received) {
  if (!bootstrap_) return {};
  std::vector<std::uint64_t> own(sent.begin(), sent.end());
  own.insert(own.end(), received.begin(), received.end());
  std::vector<std::uint64_t> all(own.size() * size());
  if (gather(own.data(), own.size() * sizeof(std::uint64_t), all.data()) != 0) {
    return fail({ErrorCode::kSystem, "the lengths of an all_to_all could not be compared"});
  }
  for (std::size_t from = 0; from < size(); ++from) {
    for (std::size_t to = 0; to < size(); ++to) {
      const std::uint64_t out = all[from * own.size() + to];
      const std::uint64_t in = all[to * own.size() + size() + from];
      if (out == in) continue;
      return fail({ErrorCode::kMismatch, "in " + waiting_for_ + ", " +
                                             world_.name_of(static_cast<int>(from)) + " sends " +
                                             std::to_string(out) + " bytes to " +
                                             world_.name_of(static_cast<int>(to)) +
                                             ", which expects " + std::to_string(in)});
    }
  }
  return {};
}

Status PluginBackend::all_to_all(const Call& call, const std::byte* in, PerRank sent,
                                 std::byte* out, PerRank received) {
  if (Status met = begin(call); !met) return met;
  if (Status alike = check_lengths(sent, received); !alike) return alike;
  return outcome(plugin_.all_to_all(state_, in, sent.data(), out, received.data()));
}

Status PluginBackend::barrier(const Call& call) {
  return begin(call);
}

// The length is sent ahead over the bootstrap, so that both sides get an error if their lengths
// differ.
Status PluginBackend::send(const std::byte* data, std::uint64_t bytes, int to) {
  waiting_for_ = "a send of " + std::to_string(bytes) + " bytes";
  if (bootstrap_) {
    const auto* const length = reinterpret_cast<const std::byte*>(&bytes);
    if (Status status = bootstrap_->send(length, sizeof(bytes), to); !status) return status;
  }
  began_ = std::chrono::steady_clock::now();
  return outcome(plugin_.send(state_, data, bytes, to));
}

Status PluginBackend::receive(std::byte* data, std::uint64_t bytes, int from) {
  waiting_for_ = "a receive of " + std::to_string(bytes) + " bytes";
  std::uint64_t sent = bytes;
  if (bootstrap_) {
    auto* const length = reinterpret_cast<std::byte*>(&sent);
    if (Status status = bootstrap_->receive(length, sizeof(sent), from); !status) return status;
  }
  if (sent != bytes) {
    return fail({ErrorCode::kMismatch, world_.name_of(from) + " sends " + std::to_string(sent) +
                                           " bytes to " + world_.name_of(world_.rank) +
                                           ", which expects " + std::to_string(bytes)});
  }
  began_ = std::chrono::steady_clock::now();
  return outcome(plugin_.receive(state_, data, bytes, from));
}

std::string PluginBackend::explain(DataType type, std::uint64_t) const {
  const Result<Way> way =
      way_of({.kind = CallKind::kAllReduce, .type = type, .reduction = ReduceOp::kSum}, false);
  const std::string name = plugin_.name;
  if (way && *way != Way::kExchanged) return name + ", its own all-reduce";
  return name + ", all-to-all, reduced here in the order of the ranks, all-gather";
}

namespace {

// The message of one rank, cut off at a fixed length.
struct Word {
  std::array<char, 512> message;
  std::array<char, 512> advice;
};

void put(std::array<char, 512>& into, const std::string& text) {
  const std::size_t length = std::min(text.size(), into.size() - 1);
  std::memcpy(into.data(), text.data(), length);
}

}  // namespace

Status agree(const World& world, Backend* bootstrap, const Status& own) {
  if (bootstrap == nullptr) return own;
  Word word = {};
  if (!own) {
    put(word.message, own.error().message);
    put(word.advice, own.error().advice);
  }
  const auto size = static_cast<std::size_t>(world.size);
  std::vector<Word> words(size);
  const std::vector<std::uint64_t> bytes(size, sizeof(Word));
  const Call call{.kind = CallKind::kAllGather, .count = sizeof(Word) * size};
  Status gathered = bootstrap->all_gather(call, reinterpret_cast<const std::byte*>(&word),
                                          reinterpret_cast<std::byte*>(words.data()), bytes);
  if (!gathered) return gathered;
  for (std::size_t rank = 0; rank < size; ++rank) {
    if (words[rank].message[0] == '\0') continue;
    return Error{ErrorCode::kConfiguration,
                 world.name_of(static_cast<int>(rank)) + ": " + words[rank].message.data(),
                 words[rank].advice.data(), static_cast<int>(rank), world.hosts[rank]};
  }
  return {};
}

}  // namespace muster::collective
