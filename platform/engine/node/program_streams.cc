#include "engine/node/program_streams.h"

#include <signal.h>

#include <chrono>
#include <string>
#include <utility>

namespace muster::engine::node {

using base::Result;

namespace {

/// How long the last messages have to arrive before the connection is closed from this end.
constexpr std::chrono::seconds kHangUpPatience{30};

class ProgramLink : public RunLink {
 public:
  ProgramLink(std::shared_ptr<NodeConnection> line, const std::shared_ptr<RunConversation>& to)
      : line_(std::move(line)) {
    const std::weak_ptr<RunConversation> weak = to;
    line_->listen({.on_message =
                       [weak](const NodeMessage& message) {
                         const auto still = weak.lock();
                         const auto* const piece = std::get_if<StreamBytes>(&message);
                         if (still && piece != nullptr) still->take(piece->bytes);
                       },
                   .on_end =
                       [weak](const std::string&) {
                         if (const auto still = weak.lock()) still->hung_up();
                       },
                   .on_drain =
                       [weak] {
                         if (const auto still = weak.lock()) still->drained();
                       }});
  }
  void write(std::string_view bytes) override {
    line_->send(StreamBytes{.bytes = std::string(bytes)});
  }
  size_t waiting() const override { return line_->waiting(); }
  void pause(bool paused) override { line_->pause(paused); }

 private:
  std::shared_ptr<NodeConnection> line_;
};

}  // namespace

std::unique_ptr<RunLink> link_program(std::shared_ptr<NodeConnection> line,
                                      const std::shared_ptr<RunConversation>& to) {
  return std::make_unique<ProgramLink>(std::move(line), to);
}

// --- the node's end

Result<void> ExecBridge::begin(const Begin& begin) {
  MUSTER_TRY(exec_, begin(handlers()));
  exec_->pause(true);
  send(RunBegun{});
  return {};
}

ExecHandlers ExecBridge::handlers() {
  const std::weak_ptr<ExecBridge> weak = weak_from_this();
  return {.on_output =
              [weak](std::string_view bytes, bool is_error) {
                if (const auto self = weak.lock()) self->send_output(bytes, is_error);
              },
          .on_exit =
              [weak](job::ExitStatus status) {
                if (const auto self = weak.lock()) self->ended(std::move(status));
              },
          .on_drain =
              [weak] {
                const auto self = weak.lock();
                if (self && self->line_) self->line_->pause(false);
              },
          .on_output_end =
              [weak](bool is_error) {
                if (const auto self = weak.lock()) self->send(RunOutputEnd{.is_error = is_error});
              }};
}

void ExecBridge::connected(std::shared_ptr<NodeConnection> line) {
  line_ = std::move(line);
  const std::weak_ptr<ExecBridge> weak = weak_from_this();
  line_->listen({.on_message =
                     [weak](const NodeMessage& message) {
                       if (const auto self = weak.lock()) self->take(message);
                     },
                 .on_end =
                     [weak](const std::string&) {
                       if (const auto self = weak.lock()) self->closed();
                     },
                 .on_drain =
                     [weak] {
                       const auto self = weak.lock();
                       if (self && self->exec_ && !self->has_ended_) self->exec_->pause(false);
                     }});
  line_->send(StreamBytes{std::exchange(waiting_, {})});
  if (exec_ && !has_ended_) exec_->pause(false);
}

void ExecBridge::send(const RunMessage& message) {
  std::string packet = encode_run(message);
  if (line_) {
    line_->send(StreamBytes{std::move(packet)});
  } else {
    waiting_ += packet;
  }
}

void ExecBridge::send_output(std::string_view bytes, bool is_error) {
  for (size_t at = 0; at < bytes.size(); at += kAttachPiece) {
    send(AttachOutput{.bytes = std::string(bytes.substr(at, kAttachPiece)), .is_error = is_error});
  }
  if (exec_ && line_ && line_->waiting() > NodeConnection::kHigh) exec_->pause(true);
}

void ExecBridge::take(const NodeMessage& message) {
  const auto* const bytes = std::get_if<StreamBytes>(&message);
  if (bytes == nullptr) return;
  reader_.add(bytes->bytes);
  while (const auto message_read = reader_.next()) take(*message_read);
  if (reader_.is_broken()) return closed();
  if (exec_ && !has_ended_ && exec_->waiting() > Exec::kHigh) line_->pause(true);
}

void ExecBridge::take(const RunMessage& message) {
  if (!exec_ || has_ended_) return;
  if (const auto* const input = std::get_if<AttachInput>(&message)) {
    exec_->write(input->bytes);
  } else if (std::holds_alternative<AttachInputEnd>(message)) {
    exec_->close_input();
  } else if (const auto* const size = std::get_if<AttachSize>(&message)) {
    exec_->resize(size->rows, size->columns);
  }
}

/// RunEnded has no field for a lost task: the program of a lost task was killed.
void ExecBridge::ended(job::ExitStatus status) {
  if (std::exchange(status.lost, false)) status.signal = SIGKILL;
  has_ended_ = true;
  send(RunEnded{{.status = std::move(status), .ended = {}}});
  if (line_) line_->pause(false);  // it may be paused until the program reads
  patience_ = loop_.after(kHangUpPatience, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->closed();
  });
}

/// Drops both ends later: a handler of either may be running.
void ExecBridge::closed() {
  patience_.reset();
  loop_.post([line = std::exchange(line_, nullptr),
              exec = std::shared_ptr<Exec>(std::exchange(exec_, nullptr)),
              over = std::exchange(over_, nullptr)]() mutable {
    line.reset();
    exec.reset();
    if (over) over();
  });
}

// --- the streams of a task

TaskStreams::TaskStreams(base::EventLoop& loop, TreeFetch::Open open, Send send)
    : loop_(loop), open_(std::move(open)), send_(std::move(send)) {}

TaskStreams::~TaskStreams() = default;

void TaskStreams::reach_program(uint64_t stream, const ExecBridge::Begin& begin) {
  auto bridged = std::make_shared<Bridged>();
  const std::weak_ptr<Bridged> weak = bridged;
  bridged->bridge = std::make_shared<ExecBridge>(loop_, [this, weak] { forget(weak.lock()); });
  if (auto begun = bridged->bridge->begin(begin); !begun) {
    return send_(StreamRefused{stream, std::move(begun).error()});
  }
  bridges_.insert(bridged);
  bridged->opening = open_(stream, [this, weak, stream](TreeFetch::Line line) {
    const auto still = weak.lock();
    if (!still) return;
    if (line) return still->bridge->connected(*std::move(line));
    send_(StreamRefused{stream, std::move(line).error()});
    forget(still);
  });
}

void TaskStreams::forget(const std::shared_ptr<Bridged>& bridged) {
  bridges_.erase(bridged);
  if (bridges_.empty() && over_) loop_.post(over_);
}

void TaskStreams::send_folder(uint64_t stream, const std::filesystem::path& folder) {
  const auto slot = std::make_shared<std::shared_ptr<void>>();
  *slot = open_(stream, [this, folder, slot, stream](TreeFetch::Line line) {
    openings_.erase(*slot);
    if (line) return folders_.send(*std::move(line), folder, FolderSender::FailedFile::kIsPadded);
    send_(StreamRefused{stream, std::move(line).error()});
  });
  openings_.insert(*slot);
}

}  // namespace muster::engine::node
