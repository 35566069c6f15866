// What the server and the programs that it has on Slurm's nodes (muster-node) say to each other.
//
// One muster-node runs for each task, started by srun. It calls the server back, on one connection
// for orders and news; for each stream (a program beside the task's own, a tree, artifacts) it
// makes another, when it is told to. A connection begins in the clear with one line of who calls;
// then both ends show, by TLS 1.3 with a pre-shared key, that they have the key of that attempt
// (rsh/secure_channel.h; muster-node is the near end). What follows are frames (base/frame.h) of at
// most kMaxNodeMessage, whose bytes are CBOR, or bytes as they are (follow records, bytes of a
// stream).
//
// Pure; NodeReader is not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/frame.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/shim/follow_wire.h"

namespace muster::engine::slurm {

inline constexpr size_t kMaxNodeMessage = 32 << 20;

/// The first line of a connection, in the clear: "MUSTER-NODE 1 JOB ATTEMPT\n".
struct Caller {
  Gang gang;
  bool operator==(const Caller&) const = default;
};
inline constexpr size_t kLongestCaller = 256;
std::string encode(const Caller& caller);
base::Result<Caller> decode_caller(std::string_view line);

// --- what muster-node says

/// The first message of each connection.
struct Hello {
  uint64_t stream = 0;         ///< 0: the connection for orders; else the stream that was asked for
  int component = 0;           ///< of the Slurm job
  int index = 0;               ///< of the task within the component
  uint64_t slurm_job = 0;      ///< its leader's id
  int restarts = 0;            ///< SLURM_RESTART_COUNT
  std::string node;            ///< as Slurm calls it
  std::string address;         ///< of this end of the connection
  bool shares_folder = false;  ///< it sees the server's jobs folder, and may write there
  std::vector<std::string> gpus;  ///< CUDA_VISIBLE_DEVICES as Slurm has set it
  std::vector<int> gpu_indices;   ///< their numbers on the node, where Slurm says them
  std::string version;            ///< of Muster
  bool holds_task = false;        ///< it has started one already: the connection was lost
  bool operator==(const Hello&) const = default;
};
/// Answers StartOrder. Its error is as Engine::start() has it.
struct StartAnswer {
  std::optional<base::Error> error;
};
/// Answers ChangeOrder.
struct ChangeAnswer {
  uint64_t number = 0;
  std::optional<base::Error> error;
};
struct AnsweredNews {  ///< TaskAnswered
  bool operator==(const AnsweredNews&) const = default;
};
/// TaskEnded; where the folder is not shared, all records were sent before.
struct EndedNews {
  TaskEnded end;
};
/// The folder is shared: its log or its metrics have grown, or a rank has signed in.
struct GrownNews {
  bool log = false;
  bool ranks = false;
  bool operator==(const GrownNews&) const = default;
};
/// The folder is not shared: a record of it, as `muster-shim --follow` tells it.
struct RecordNews {
  FollowRecord record;
  bool operator==(const RecordNews&) const = default;
};
/// Slurm has sent muster-node a signal; the task is being stopped with its grace.
struct SignalledNews {
  int signal = 0;
  bool operator==(const SignalledNews&) const = default;
};
/// A stream that was asked for cannot be had. Errors as those of Engine::exec() and attach().
struct StreamRefused {
  uint64_t stream = 0;
  base::Error error;
};

using NodeNews = std::variant<Hello, StartAnswer, ChangeAnswer, AnsweredNews, EndedNews, GrownNews,
                              RecordNews, SignalledNews, StreamRefused>;

// --- what the server says

/// Answers Hello of the connection for orders: go on, from here of what it follows.
struct Welcome {
  uint64_t log_offset = 0;
  uint64_t metrics_offset = 0;
  bool operator==(const Welcome&) const = default;
};
struct StartOrder {
  /// Of the job: the script names the one that was submitted, and Slurm may run that again as a
  /// later one.
  int attempt = 1;
  launch::TaskPlan plan;
  std::string programs;  ///< the folder of muster-shim and its like, on the node
  std::string folder;    ///< of jobs: the server's where it is shared, else one of the node's own
  std::string storage;   ///< the folder of storage volumes; empty: there can be none
  bool is_shared = false;
  uint64_t log_quota = 0;
  uint64_t first_sample_ms = 0;
  uint64_t sample_interval_ms = 0;
  std::vector<std::string> hidden;  ///< paths that no task finds
  std::vector<uint64_t> trees;  ///< by volume: the stream that its tree comes by; 0: it is there
};
struct StopOrder {
  StopMode mode = StopMode::kNow;
  bool operator==(const StopOrder&) const = default;
};
struct ChangeOrder {
  uint64_t number = 0;
  launch::FileChange change;
};
/// Make a connection for a program beside the task's own, or for the task's own input and output;
/// run_wire.h is what is said on it, RunStart being here.
struct ExecOrder {
  uint64_t stream = 0;
  ExecPlan plan;
};
struct AttachOrder {
  uint64_t stream = 0;
};
/// Send the content of the artifacts' folder, a tar, by this stream.
struct ArtifactsOrder {
  uint64_t stream = 0;
};
/// Nothing more is needed: remove what is of this attempt on the node, where it is not shared, and
/// end with this code.
struct Farewell {
  int code = 0;
  bool operator==(const Farewell&) const = default;
};

using NodeOrder = std::variant<Welcome, StartOrder, StopOrder, ChangeOrder, ExecOrder, AttachOrder,
                               ArtifactsOrder, Farewell>;

/// On the connection of a stream: bytes, and the end of them.
struct StreamBytes {
  std::string bytes;
  bool operator==(const StreamBytes&) const = default;
};
struct StreamEnd {
  std::optional<base::Error> error;  ///< it is not whole
};

using NodeMessage = std::variant<NodeNews, NodeOrder, StreamBytes, StreamEnd>;

/// A frame. REQUIRES: what it carries is below kMaxNodeMessage.
std::string encode_node(const NodeMessage& message);

/// Reads a message from the tag and the bytes of a frame. kInvalid: the bytes are not a message.
base::Result<NodeMessage> decode_node(char tag, std::string_view body);

/// Cuts a stream that comes in pieces into messages.
class NodeReader {
 public:
  void add(std::string_view bytes) { frames_.add(bytes); }
  /// The next whole one; nullopt: more has to come. kInvalid: these are none, and nothing that
  /// follows can be read.
  base::Result<std::optional<NodeMessage>> next();
  size_t waiting() const { return frames_.waiting(); }
  size_t kept() const { return frames_.kept(); }  ///< in memory, with what was handed out

 private:
  base::FrameReader frames_{kMaxNodeMessage};
};

}  // namespace muster::engine::slurm
