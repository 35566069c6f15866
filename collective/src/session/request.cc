#include "session/request.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

namespace muster::collective::session {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

std::string reduction_of(const Call& call) {
  std::string text = std::to_string(call.count) + " " +
                     std::string(muster::collective::to_string(call.type)) + ", " +
                     std::string(muster::collective::to_string(call.reduction.op));
  if (call.reduction.prescale != 1) text += ", prescale " + number(call.reduction.prescale);
  if (call.reduction.postscale != 1) text += ", postscale " + number(call.reduction.postscale);
  return text;
}

// A few lengths are shown, for they may be all that two ranks differ in.
std::string list_of(const std::vector<std::uint64_t>& lengths) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < lengths.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : " ") + std::to_string(lengths[i]);
  }
  return lengths.size() > kShown ? text + " ..." : text;
}

// A shape, or the part of it around `place`, where two of them begin to differ.
std::string excerpt(const std::string& shape, std::size_t place) {
  constexpr std::size_t kBefore = 60;
  constexpr std::size_t kShown = 160;
  if (shape.size() <= kShown) return shape;
  const std::size_t from = std::min(place - std::min(place, kBefore), shape.size() - kShown);
  return (from > 0 ? "..." : "") + shape.substr(from, kShown) +
         (from + kShown < shape.size() ? "..." : "");
}

// Of all_gather and all_to_all ranks choose them for themselves.
bool same_counts(const Request& one, const Request& other) {
  if (one.call != other.call) return false;
  const bool chosen = one.call.kind == CallKind::kAllGather || one.call.kind == CallKind::kAllToAll;
  return chosen || one.lengths == other.lengths;
}

// What two ranks that ask for the same kind of operation differ in.
std::pair<std::string, std::string> differences(const Request& one, const Request& other) {
  if (one.shape == other.shape) return {to_string(one), to_string(other)};
  const auto place = static_cast<std::size_t>(std::ranges::mismatch(one.shape, other.shape).in1 -
                                              one.shape.begin());
  const bool shapes_alone = same_counts(one, other);
  const auto describe = [&](const Request& request) {
    if (request.shape.empty()) return to_string(request) + " without a shape";
    const std::string shape = excerpt(request.shape, place);
    return shapes_alone ? shape : shape + " (" + to_string(request) + ")";
  };
  return {describe(one), describe(other)};
}

// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

std::string bounded_shape(std::string_view shape) {
  if (shape.size() <= kLongestShape) return std::string(shape);
  constexpr std::size_t kKept = 4000;
  char rest[64];
  std::snprintf(rest, sizeof rest, "... and %zu more bytes, %016llx", shape.size() - kKept,
                static_cast<unsigned long long>(hash_of(shape.substr(kKept))));
  return std::string(shape.substr(0, kKept)) + rest;
}

std::uint64_t bytes_of(const Request& request) {
  switch (request.call.kind) {
    case CallKind::kAllReduce:
    case CallKind::kReduceScatter:
    case CallKind::kReduce:
      return request.call.count * size_of(request.call.type);
    case CallKind::kBroadcast:
      return request.call.count;
    case CallKind::kAllGather:
    case CallKind::kAllToAll:
      return std::accumulate(request.lengths.begin(), request.lengths.end(), std::uint64_t{0});
    case CallKind::kBarrier:
    case CallKind::kSend:
      break;
  }
  return 0;
}

bool agree(const Request& one, const Request& other) {
  return same_counts(one, other) && one.shape == other.shape;
}

std::string_view to_string(CallKind kind) {
  switch (kind) {
    case CallKind::kAllReduce:
      return "all_reduce";
    case CallKind::kBroadcast:
      return "broadcast";
    case CallKind::kAllGather:
      return "all_gather";
    case CallKind::kBarrier:
      return "barrier";
    case CallKind::kReduceScatter:
      return "reduce_scatter";
    case CallKind::kReduce:
      return "reduce";
    case CallKind::kAllToAll:
      return "all_to_all";
    case CallKind::kSend:
      return "send";
  }
  return "an unknown collective";
}

std::string to_string(const Request& request) {
  const Call& call = request.call;
  switch (call.kind) {
    case CallKind::kAllReduce:
      if (request.lengths.empty()) return reduction_of(call);
      return std::to_string(request.lengths.size()) + " tensors (" + list_of(request.lengths) +
             ") of together " + reduction_of(call);
    case CallKind::kReduceScatter:
      return reduction_of(call) + ", parts of " + list_of(request.lengths);
    case CallKind::kReduce:
      return reduction_of(call) + " to rank " + std::to_string(call.root);
    case CallKind::kBroadcast:
      return std::to_string(call.count) + " bytes from rank " + std::to_string(call.root);
    case CallKind::kAllGather:
    case CallKind::kAllToAll:
      return std::to_string(bytes_of(request)) + " bytes";
    case CallKind::kBarrier:
    case CallKind::kSend:
      break;
  }
  return "nothing";
}

Error mismatch(std::string_view name, const Wanted& first, const Wanted& second) {
  const std::string quoted = "'" + std::string(name) + "': ";
  const CallKind one = first.request.call.kind;
  const CallKind other = second.request.call.kind;
  Error error{.code = ErrorCode::kMismatch,
              .advice = "every rank has to hand over a name with the same operation"};
  if (one == other) {
    const auto [mine, theirs] = differences(first.request, second.request);
    error.message = std::string(to_string(one)) + " " + quoted + first.who + " hands over " + mine +
                    "; " + second.who + " " + theirs;
    return error;
  }
  const auto with_kind = [](const Request& request) {
    const std::string kind(to_string(request.call.kind));
    return request.call.kind == CallKind::kBarrier ? kind : kind + " of " + to_string(request);
  };
  error.message = quoted + first.who + " hands over " + with_kind(first.request) + "; " +
                  second.who + " " + with_kind(second.request);
  return error;
}

}  // namespace muster::collective::session
