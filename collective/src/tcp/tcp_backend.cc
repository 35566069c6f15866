#include "tcp/tcp_backend.h"

#include <algorithm>
#include <utility>

#include "adasum/adasum.h"
#include "call/arguments.h"
#include "tcp/cost_model.h"
#include "tcp/plan.h"

namespace muster::collective::tcp {
namespace {

// Tensors whose average size is smaller than this are copied together, which takes less time than
// the system takes to process their addresses.
constexpr std::uint64_t kTiny = 2 * 1024;

// From this size on a broadcast uses a chain, and a reduction to a root uses slices.
constexpr std::uint64_t kLarge = 64 * 1024;

// An all_gather of more ranks and bytes uses a ring: that many simultaneous connections into one
// port lose packets.
constexpr int kManyRanks = 8;

std::uint64_t sum_before(PerRank lengths, int rank) {
  return sum_of(lengths.first(static_cast<std::size_t>(rank)));
}

void copy_unless_same(std::byte* out, const std::byte* in, std::uint64_t bytes) {
  if (bytes > 0 && out != in) collective::copy(out, in, bytes);
}

void run_alone(const Kernel& kernel, Pieces pieces) {
  for (const Piece& piece : pieces) {
    if (piece.count > 0) kernel(&piece.in, 1, piece.out, piece.count);
  }
}

}  // namespace

TcpBackend::TcpBackend(World& world, Probing probing)
    : TcpBackend(world, everyone_in(world), nullptr, probing) {
  if (is_alone()) return;
  own_comparison_ = std::make_unique<CallComparison>(world);
  comparison_ = own_comparison_.get();
}

TcpBackend::TcpBackend(World& world, std::vector<int> members, CallComparison* comparison,
                       Probing probing)
    : mesh_(world, std::move(members)),
      comparison_(comparison),
      forced_(algorithm_named(world.options.algorithm)),
      sent_to_(static_cast<std::size_t>(mesh_.size())),
      received_from_(static_cast<std::size_t>(mesh_.size())) {
  if (!is_alone() && probing == Probing::kNow) measure();
}

void TcpBackend::measure() {
  const Result<Costs> costs = probe(mesh_, scratch_);
  // A failure here is a failure of the world, which the next call returns.
  if (costs) costs_ = *costs;
}

int TcpBackend::streams() const {
  if (mesh_.world().switchboard != nullptr) return mesh_.world().switchboard->streams();
  std::size_t most = 0;
  for (int member = 0; member < mesh_.size(); ++member) {
    most = std::max(most, mesh_.streams_to(member).size());
  }
  return static_cast<int>(most);
}

std::vector<Candidate> TcpBackend::candidates(DataType type, bool scales_inputs,
                                              std::uint64_t bytes) const {
  // Partial results of 16-bit floats would have to travel as float32.
  const bool rounds_once = wide_type_of(type) != type;
  const Party party = {mesh_.size(), mesh_.crowd()};
  std::vector<Candidate> found =
      rank_algorithms(party, bytes, costs_, rounds_once || scales_inputs);
  if (!forced_) return found;
  Algorithm algorithm = *forced_;
  if (rounds_once && algorithm != Algorithm::kExchange) algorithm = Algorithm::kDirect;
  return {{algorithm, predict(algorithm, party, bytes, costs_)}};
}

Status TcpBackend::all_reduce(const Call& call, Pieces pieces) {
  if (own_comparison_) own_comparison_->enter(call);
  if (call.reduction.op == ReduceOp::kAdasum) return reduce_adaptively(call, pieces);
  std::uint64_t count = 0;
  for (const Piece& piece : pieces) count += piece.count;
  const bool is_tiny = pieces.size() > 1 && count * size_of(call.type) < kTiny * pieces.size();
  if (is_tiny && !is_alone()) return reduce_packed(call, pieces, count);
  return reduce_all(call, pieces, count);
}

Status TcpBackend::reduce_packed(const Call& call, Pieces pieces, std::uint64_t count) {
  const std::size_t element = size_of(call.type);
  std::byte* const all = packed_.take(count * element).data();
  std::byte* next = all;
  for (const Piece& piece : pieces) {
    copy_unless_same(next, piece.in, piece.count * element);
    next += piece.count * element;
  }
  const Piece whole = {all, all, count};
  if (Status reduced = reduce_all(call, {&whole, 1}, count); !reduced) return reduced;
  next = all;
  for (const Piece& piece : pieces) {
    copy_unless_same(piece.out, next, piece.count * element);
    next += piece.count * element;
  }
  return {};
}

Status TcpBackend::reduce_all(const Call& call, Pieces pieces, std::uint64_t count) {
  const Kernel whole = Kernel::of(spec_of(call.type, call.reduction, mesh_.size()));
  if (is_alone()) {
    run_alone(whole, pieces);
    return {};
  }
  const Extent extent = {count, size_of(call.type)};
  const bool scales_inputs = call.reduction.prescale != 1;
  const Algorithm algorithm =
      candidates(call.type, scales_inputs, extent.bytes()).front().algorithm;
  if (!sees_all_inputs(algorithm)) return reduce_in_steps(call, pieces, extent, algorithm);
  const Program program = plan_at_once(algorithm, place(), extent, whole);
  return run(call, program, Memory::inputs_of(pieces, extent.element),
             Memory::outputs_of(pieces, extent.element));
}

Status TcpBackend::reduce_in_steps(const Call& call, Pieces pieces, Extent extent,
                                   Algorithm algorithm) {
  const KernelSpec whole = spec_of(call.type, call.reduction, mesh_.size());
  KernelSpec spec = whole;
  spec.prescale = 1;
  const Kernel last = Kernel::of(spec);
  spec.postscale = 1;
  spec.divisor = 1;
  const Kernel partial = Kernel::of(spec);
  Space from = Space::kIn;
  if (whole.prescale != 1) {
    spec.prescale = whole.prescale;
    run_alone(Kernel::of(spec), pieces);
    from = Space::kOut;
  }
  const Steps steps = {partial, last, from};
  const Program program = plan_in_steps(algorithm, place(), extent, steps);
  return run(call, program, Memory::inputs_of(pieces, extent.element),
             Memory::outputs_of(pieces, extent.element));
}

Status TcpBackend::reduce_adaptively(const Call& call, Pieces pieces) {
  AdasumLinks links{
      .rank = mesh_.rank(), .size = mesh_.size(), .swap = {}, .send = {}, .receive = {}};
  links.swap = [&](int peer, ByteView mine, std::span<std::byte> theirs) {
    Program program;
    program.send(peer, {Space::kIn, 0, mine.size()});
    program.store(peer, {Space::kOut, 0, theirs.size()});
    return run(call, program, {mine.data(), mine.size()}, {theirs.data(), theirs.size()});
  };
  links.send = [&](int peer, ByteView mine) {
    Program program;
    program.send(peer, {Space::kIn, 0, mine.size()});
    return run(call, program, {mine.data(), mine.size()}, {});
  };
  links.receive = [&](int peer, std::span<std::byte> theirs) {
    Program program;
    program.store(peer, {Space::kOut, 0, theirs.size()});
    return run(call, program, {}, {theirs.data(), theirs.size()});
  };
  return adasum(links, call.type, call.reduction, pieces);
}

Status TcpBackend::reduce_scatter(const Call& call, const std::byte* in, std::byte* out,
                                  PerRank counts) {
  if (own_comparison_) own_comparison_->enter(call);
  const Kernel whole = Kernel::of(spec_of(call.type, call.reduction, mesh_.size()));
  const std::size_t element = size_of(call.type);
  if (is_alone()) {
    const Piece piece = {in, out, counts[0]};
    run_alone(whole, {&piece, 1});
    return {};
  }
  const Program program = plan_reduce_scatter(place(), counts, element, whole);
  const std::uint64_t own = counts[static_cast<std::size_t>(mesh_.rank())];
  return run(call, program, {in, sum_of(counts) * element}, {out, own * element});
}

Status TcpBackend::all_gather(const Call& call, const std::byte* part, std::byte* all,
                              PerRank bytes) {
  if (own_comparison_) own_comparison_->enter(call);
  const auto rank = static_cast<std::size_t>(mesh_.rank());
  if (bytes[rank] > 0) copy_unless_same(all + sum_before(bytes, mesh_.rank()), part, bytes[rank]);
  const std::uint64_t total = sum_of(bytes);
  const bool goes_round = mesh_.size() > kManyRanks && total >= kLarge;
  const Program program =
      goes_round ? plan_all_gather_ring(place(), bytes) : plan_all_gather_direct(place(), bytes);
  return run(call, program, {}, {all, total});
}

Status TcpBackend::reduce(const Call& call, const std::byte* in, std::byte* out) {
  if (own_comparison_) own_comparison_->enter(call);
  const Kernel whole = Kernel::of(spec_of(call.type, call.reduction, mesh_.size()));
  const Extent extent = {call.count, size_of(call.type)};
  if (is_alone()) {
    const Piece piece = {in, out, call.count};
    run_alone(whole, {&piece, 1});
    return {};
  }
  const bool is_sliced = mesh_.size() > 2 && extent.bytes() >= kLarge;
  const Program program = is_sliced ? plan_reduce_sliced(place(), extent, call.root, whole)
                                    : plan_reduce_at_root(place(), extent, call.root, whole);
  const std::uint64_t out_bytes = mesh_.rank() == call.root ? extent.bytes() : 0;
  return run(call, program, {in, extent.bytes()}, {out, out_bytes});
}

Status TcpBackend::broadcast(const Call& call, std::byte* data) {
  if (own_comparison_) own_comparison_->enter(call);
  const Program program = call.count >= kLarge
                              ? plan_broadcast_chain(place(), call.count, call.root)
                              : plan_broadcast_tree(place(), call.count, call.root);
  return run(call, program, {}, {data, call.count});
}

Status TcpBackend::all_to_all(const Call& call, const std::byte* in, PerRank sent, std::byte* out,
                              PerRank received) {
  if (own_comparison_) own_comparison_->enter(call);
  const auto rank = static_cast<std::size_t>(mesh_.rank());
  if (sent[rank] != received[rank]) {
    const std::string name = mesh_.name_of(mesh_.rank());
    Error error = {ErrorCode::kMismatch,
                   name + " sends itself " + std::to_string(sent[rank]) + " bytes, but receives " +
                       std::to_string(received[rank]) + " in " + to_string(call)};
    return is_alone() ? error : mesh_.monitor().fail(std::move(error));
  }
  if (sent[rank] > 0) {
    collective::copy(out + sum_before(received, mesh_.rank()), in + sum_before(sent, mesh_.rank()),
                     sent[rank]);
  }
  // The header for each pair has the pair's own length.
  const auto with_count = [&call](PerRank lengths) {
    return [&call, lengths](int peer) {
      Call pair = call;
      pair.count = lengths[static_cast<std::size_t>(peer)];
      return pair;
    };
  };
  const Greeting greeting = {
      .call = call, .to = with_count(sent), .from = with_count(received), .when_slow = {}};
  return run(greeting, plan_all_to_all(place(), sent, received), {in, sum_of(sent)},
             {out, sum_of(received)});
}

Status TcpBackend::barrier(const Call& call) {
  if (own_comparison_) own_comparison_->enter(call);
  return run(call, plan_barrier(place()), {}, {});
}

Status TcpBackend::send(const std::byte* data, std::uint64_t bytes, int to) {
  Program program;
  program.send(to, {Space::kIn, 0, bytes});
  const Call call = {.kind = CallKind::kSend,
                     .root = mesh_.world_rank_of(to),
                     .count = bytes,
                     .sequence = ++sent_to_[static_cast<std::size_t>(to)]};
  return run(Greeting{.call = call}, program, {data, bytes}, {});
}

Status TcpBackend::receive(std::byte* data, std::uint64_t bytes, int from) {
  Program program;
  program.store(from, {Space::kOut, 0, bytes});
  const Call call = {.kind = CallKind::kSend,
                     .root = mesh_.world().rank,
                     .count = bytes,
                     .sequence = ++received_from_[static_cast<std::size_t>(from)]};
  return run(Greeting{.call = call}, program, {}, {data, bytes});
}

Status TcpBackend::run(const Call& call, const Program& program, Memory in, Memory out) {
  const Greeting greeting = {.call = whole_.value_or(call), .to = {}, .from = {}, .when_slow = {}};
  return run(greeting, program, std::move(in), std::move(out));
}

Status TcpBackend::run(const Greeting& greeting, const Program& program, Memory in, Memory out) {
  if (is_alone()) return {};
  Greeting complete = greeting;
  const bool is_numbered = greeting.call.kind != CallKind::kSend;
  if (comparison_ != nullptr && is_numbered) complete.when_slow = [this] { comparison_->ask(); };
  return Exchange(mesh_, complete, program, std::move(in), std::move(out), scratch_).run();
}

std::string TcpBackend::explain(DataType type, std::uint64_t bytes) const {
  if (is_alone()) return "one rank, no transport";
  return "tcp, " + describe(candidates(type, false, bytes), streams());
}

}  // namespace muster::collective::tcp
