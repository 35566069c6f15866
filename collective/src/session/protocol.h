// The messages between the ranks of a session and the coordinator on rank 0, and the requests in
// them. Ranks send hand-overs; the coordinator answers with records, which every rank receives in
// the same order.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "call/call.h"
#include "muster/collective/result.h"
#include "transport/bytes.h"

namespace muster::collective::session {

/// The operation that a rank hands over.
struct Request {
  /// For all_gather and all_to_all without `count` and `shape`, which no rank has alone. The
  /// sequence is 0.
  Call call;

  /// all_reduce of two or more tensors: the elements of each. reduce_scatter: the elements of each
  /// rank's part. all_gather: one number, the bytes of this rank's part. all_to_all: the bytes for
  /// each rank.
  std::vector<std::uint64_t> lengths;

  /// bounded_shape() of the caller's shape; usually empty. Set in hand-overs, empty in records.
  std::string shape = {};

  bool operator==(const Request&) const = default;
};

inline constexpr std::size_t kLongestShape = 4096;

/// The shape as it is sent and compared: the part beyond kLongestShape is replaced by its hash.
std::string bounded_shape(std::string_view shape);

/// The bytes that one rank moves, for the limits of fusion.
std::uint64_t bytes_of(const Request& request);

/// Whether two requests match. Lengths that each rank chooses for itself may differ.
bool agree(const Request& one, const Request& other);

/// For messages: "5 float32, sum"; "8 bytes from rank 0"; "3 tensors of 12 float32, sum in all".
std::string to_string(const Request& request);

/// "all_reduce", "broadcast".
std::string_view to_string(CallKind kind);

/// A rank's name for messages ("rank 0 on host a") and its request.
struct RankRequest {
  std::string who;
  const Request& request;
};

/// The error of two ranks whose requests for `name` differ; `first` is the lower rank.
Error mismatch(std::string_view name, const RankRequest& first, const RankRequest& second);

// A name gets its id in the first record that contains it. From then on a rank that repeats its
// request sends the id alone; if all ranks do, so does the record.
//
// Little-endian; a text or list is preceded by its length (transport/bytes.h):
//
//   hand-over:  u8 1, text name, call header (call/call.h), u32 n, n x u64 lengths, text shape
//               u8 2, u32 id            the same again
//               u8 3                    join
//               u8 4                    leave
//               u8 5, u64 microseconds, u32 n, n x (u32 rank, u64 bytes, u64 microseconds busy)
//                                       use of the links to other ranks
//   record:     u8 1, u32 n, n entries  carry these out, together
//               u8 2, u32 n, n x u32    forget these ids
//               u8 3, u32 rank          this rank has left; nothing follows
//               u8 4, u32 rank          all have joined, this rank last
//   entry:      u32 id, u16 last rank to hand over, u8 flags: 1 new, 2 failed
//               new: text name, call header, u32 n, n x u64 lengths, u32 m, m x u64 gathered
//               failed: an Error (transport/bytes.h)
//
// Pure. Received bytes are checked; an invalid message decodes to nothing.

inline constexpr std::size_t kLongestName = 4096;

struct New {
  std::string name;
  Request request;
};
struct Again {
  std::uint32_t id;
};
struct Join {};
struct Leave {};

/// What a rank has sent over TCP to another rank (transport/socket.h).
struct LinkUse {
  int to = 0;
  std::uint64_t bytes = 0;
  std::chrono::microseconds busy{0};
};
/// The use of all links of a rank in the time since its last report.
struct LinkReport {
  std::chrono::microseconds window{0};
  std::vector<LinkUse> links = {};
};
using HandOver = std::variant<New, Again, Join, Leave, LinkReport>;

Bytes encode_new(std::string_view name, const Request& request);
Bytes encode(Again again);
Bytes encode(Join);
Bytes encode(Leave);
Bytes encode(const LinkReport& report);
std::optional<HandOver> decode_hand_over(ByteView message);

/// The operation that the ranks have agreed on for a name.
struct Agreed {
  std::string name;
  // Of the lowest rank that handed it over. For an all_to_all, `lengths` has only their sum.
  Request request;
  std::vector<std::uint64_t> gathered;  // all_gather: bytes by rank
  std::optional<Error> error = {};      // the reason why the ranks do not agree
};

struct Entry {
  std::uint32_t id = 0;
  int last = 0;
  std::shared_ptr<const Agreed> news = {};  // null: as before

  // On rank 0 only.
  std::uint32_t tally = 0;  // tally_of() the name
  int hand_overs = 0;       // ranks that have handed it over
};

struct Batch {
  std::vector<Entry> entries;
};
struct Forget {
  std::vector<std::uint32_t> ids;
};
struct Left {
  int rank;
};
struct AllJoined {
  int last;
};
using Record = std::variant<Batch, Forget, Left, AllJoined>;

/// The counter for hand-overs of a name (channel.h), equal on every rank for every compiler.
std::uint32_t tally_of(std::string_view name);

Bytes encode(const Record& record);

/// Decodes into `batch` and reuses its memory. False if the record is not a batch.
bool decode_batch(ByteView record, Batch& batch);
std::optional<Record> decode_record(ByteView record);
bool is_batch(ByteView record);

}  // namespace muster::collective::session
