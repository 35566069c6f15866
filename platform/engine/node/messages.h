// The protocol between the server and the muster-nodes on the machines that a cluster lends.
//
// One muster-node runs for each task. It calls the server, or the server connects to it, and keeps
// one connection for orders and news. For each stream (a program beside the task's own, a tree, artifacts) the server orders a
// connection of its own. A connection begins in the clear with one line that names the caller's
// attempt; then both ends prove, by TLS 1.3 with a pre-shared key, that they have the key of that
// attempt (rsh/secure_channel.h; muster-node is the near end). What follows are frames
// (base/frame.h) of at most kMaxNodeMessage. The body of a frame is CBOR (fields.h), or plain
// bytes: follow records, and the bytes of a stream.
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
#include "engine/shim/follow.h"
#include "engine/shim/task_limits.h"
#include "launch/task_plan.h"

namespace muster::engine::node {

inline constexpr size_t kMaxNodeMessage = 32 << 20;

/// The first line of a connection, in the clear: "MUSTER-NODE 1 JOB ATTEMPT\n".
struct Caller {
  GangId gang;
  bool operator==(const Caller&) const = default;
};
inline constexpr size_t kLongestCaller = 256;
std::string encode(const Caller& caller);
base::Result<Caller> decode_caller(std::string_view line);

/// Where the server connects to the muster-node (Kubernetes' port-forward), it first sends this
/// line: "MUSTER-SERVER 1 STREAM\n". The muster-node then begins as if it had called.
struct ServerDial {
  uint64_t stream = 0;  ///< 0: the connection for orders; else the stream that was ordered
  bool operator==(const ServerDial&) const = default;
};
std::string encode(const ServerDial& dial);
base::Result<ServerDial> decode_server_dial(std::string_view line);

// --- news: from muster-node to the server

/// The task of a muster-node, and the resources that the cluster has assigned to it on its node.
/// Their source depends on the cluster: slurm_step.h reads them from the variables of a Slurm step,
/// pod.h from those of a pod.
struct NodeFacts {
  int component = 0;              ///< of the allocation: its tasks request the same resources
  int index = 0;                  ///< of the task within the component
  uint64_t allocation = 0;        ///< the cluster's id of the allocation; Slurm: the job's id
  int restarts = 0;               ///< how many times the cluster has run the allocation again
  std::string node;               ///< the cluster's name of the node
  std::vector<std::string> gpus;  ///< CUDA_VISIBLE_DEVICES as the cluster has set it
  std::vector<int> gpu_indices;   ///< the numbers of these GPUs on the node, if known
  std::string instance;  ///< the cluster's id of what runs this muster-node: a pod's uid; or empty
  bool operator==(const NodeFacts&) const = default;
};

/// The first message of each connection.
struct Hello {
  uint64_t stream = 0;  ///< 0: the connection for orders; else the stream that the server ordered
  NodeFacts facts;
  std::string address;         ///< of this end of the connection
  bool shares_folder = false;  ///< this node can read and write the server's folder of jobs
  std::string version;         ///< of Muster
  bool holds_task = false;     ///< muster-node has already started its task, and reconnects
  uint64_t start = 0;          ///< that task's StartOrder::start; 0: not known
  /// What muster-node has found in the image that it runs in; empty: it runs on a machine.
  std::optional<launch::ImageFacts> image;
  bool operator==(const Hello&) const = default;
};
/// Answers StartOrder. Errors: those of Engine::start().
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
/// TaskEnded. If the folder is not shared, all records were sent before this.
struct EndedNews {
  TaskEnded end;
};
/// If the folder is shared: the log or the metrics have grown, or a rank has registered.
struct GrownNews {
  bool log = false;
  bool ranks = false;
  bool operator==(const GrownNews&) const = default;
};
/// If the folder is not shared: a record of it, as `muster-shim --follow` prints it.
struct RecordNews {
  FollowRecord record;
  bool operator==(const RecordNews&) const = default;
};
/// The cluster has sent muster-node a signal; the task is being stopped with its grace period, or the
/// signal may have ended it already. Not sent if the task had ended by itself before.
struct SignalledNews {
  int signal = 0;
  bool operator==(const SignalledNews&) const = default;
};
/// A stream that the server ordered cannot be opened. Errors: those of Engine::exec() and attach().
struct StreamRefused {
  uint64_t stream = 0;
  base::Error error;
};

/// The last message, after a Farewell: the attempt's files are removed from the node. A proxy between
/// the ends may report the end of the connection late: containerd's port-forward waits for a second.
struct LeftNews {
  bool operator==(const LeftNews&) const = default;
};

using NodeNews = std::variant<Hello, StartAnswer, ChangeAnswer, AnsweredNews, EndedNews, GrownNews,
                              RecordNews, SignalledNews, StreamRefused, LeftNews>;

// --- orders: from the server to muster-node

/// Answers the Hello of the connection for orders. Records are sent from these offsets on.
struct Welcome {
  uint64_t log_offset = 0;
  uint64_t metrics_offset = 0;
  uint64_t start = 0;  ///< nothing is reported of a task with another StartOrder::start; 0: of any
  bool operator==(const Welcome&) const = default;
};
struct StartOrder {
  /// The job's attempt. It is later than the brief's if the cluster has run the allocation again.
  int attempt = 1;
  uint64_t start = 1;  ///< within the attempt: a start that has failed may be repeated
  launch::TaskPlan plan;
  std::string programs;  ///< the folder of muster-shim and the other programs, on the node
  std::string folder;    ///< of jobs: the server's if it is shared, else the node's own
  std::string storage;   ///< the folder of storage volumes; empty: the task can have none
  bool is_shared = false;
  uint64_t log_quota = 0;
  TaskLimits limits;  ///< of every task: those that are numbers
  uint64_t first_sample_ms = 0;
  uint64_t sample_interval_ms = 0;
  std::vector<std::string> hidden;  ///< paths that are hidden from tasks
  std::string filter;               ///< of the system calls of tasks; empty: none
  std::vector<uint64_t> trees;      ///< by volume: the stream of its tree; 0: the tree is there
};
struct StopOrder {
  StopMode mode = StopMode::kNow;
  bool operator==(const StopOrder&) const = default;
};
struct ChangeOrder {
  uint64_t number = 0;
  launch::FileChange change;
};
/// Run a program beside the task's own and open a connection for it, on which the messages of
/// run_wire.h follow; this order takes the place of RunStart.
struct ExecOrder {
  uint64_t stream = 0;
  ExecPlan plan;
};
/// Open a connection for the input and output of the task's own program, with the same messages.
struct AttachOrder {
  uint64_t stream = 0;
};
/// Send the content of the artifacts' folder as a tar by this stream.
struct ArtifactsOrder {
  uint64_t stream = 0;
};
/// Remove the attempt's files from the node, unless the folder is shared, and exit with this code.
struct Farewell {
  int code = 0;
  /// The artifacts stay on the node, because the server could not fetch them.
  bool keeps_artifacts = false;
  bool operator==(const Farewell&) const = default;
};

using NodeOrder = std::variant<Welcome, StartOrder, StopOrder, ChangeOrder, ExecOrder, AttachOrder,
                               ArtifactsOrder, Farewell>;

/// On the connection of a stream: a piece of its bytes.
struct StreamBytes {
  std::string bytes;
  bool operator==(const StreamBytes&) const = default;
};
/// The end of a stream.
struct StreamEnd {
  std::optional<base::Error> error;  ///< the stream is incomplete
  std::vector<std::string> notes;    ///< what a complete stream lacks: files that cannot be read
};

using NodeMessage = std::variant<NodeNews, NodeOrder, StreamBytes, StreamEnd>;

/// Encodes a frame. REQUIRES: its body is shorter than kMaxNodeMessage.
std::string encode_node(const NodeMessage& message);

/// Decodes the tag and the body of a frame. kInvalid: the bytes are not a message.
base::Result<NodeMessage> decode_node(char tag, std::string_view body);

/// Splits a byte stream, received in pieces, into messages.
class NodeReader {
 public:
  void add(std::string_view bytes) { frames_.add(bytes); }
  /// The next complete message; nullopt: more bytes are needed. kInvalid: the bytes are not a
  /// message, and nothing after them can be read.
  base::Result<std::optional<NodeMessage>> next();
  size_t waiting() const { return frames_.waiting(); }
  size_t kept() const {
    return frames_.kept();
  }  ///< bytes in memory, including those already returned

 private:
  base::FrameReader frames_{kMaxNodeMessage};
};

}  // namespace muster::engine::node
