#include "engine/slurm/node/exec_bridge.h"

#include <signal.h>

#include <chrono>
#include <utility>

namespace muster::engine::slurm {

using base::Result;

namespace {

/// For the last words to arrive where nobody hangs up.
constexpr std::chrono::seconds kHangUpPatience{30};

}  // namespace

Result<void> ExecBridge::begin(const Begin& begin) {
  MUSTER_TRY(exec_, begin(handlers()));
  exec_->pause(true);
  say(RunBegun{});
  return {};
}

ExecHandlers ExecBridge::handlers() {
  const std::weak_ptr<ExecBridge> weak = weak_from_this();
  return {.on_output =
              [weak](std::string_view bytes, bool is_error) {
                if (const auto self = weak.lock()) self->say_output(bytes, is_error);
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
                if (const auto self = weak.lock()) self->say(RunOutputEnd{.is_error = is_error});
              }};
}

void ExecBridge::connected(std::shared_ptr<NodeConnection> line) {
  line_ = std::move(line);
  const std::weak_ptr<ExecBridge> weak = weak_from_this();
  line_->listen({.on_message =
                     [weak](const NodeMessage& message) {
                       if (const auto self = weak.lock()) self->heed(message);
                     },
                 .on_end =
                     [weak](const std::string&) {
                       if (const auto self = weak.lock()) self->hung_up();
                     },
                 .on_drain =
                     [weak] {
                       const auto self = weak.lock();
                       if (self && self->exec_ && !self->has_ended_) self->exec_->pause(false);
                     }});
  line_->send(StreamBytes{std::exchange(waiting_, {})});
  if (exec_ && !has_ended_) exec_->pause(false);
}

void ExecBridge::say(const RunMessage& message) {
  std::string packet = encode_run(message);
  if (line_) {
    line_->send(StreamBytes{std::move(packet)});
  } else {
    waiting_ += packet;
  }
}

void ExecBridge::say_output(std::string_view bytes, bool is_error) {
  for (size_t at = 0; at < bytes.size(); at += kAttachPiece) {
    say(AttachOutput{.bytes = std::string(bytes.substr(at, kAttachPiece)), .is_error = is_error});
  }
  if (exec_ && line_ && line_->waiting() > NodeConnection::kHigh) exec_->pause(true);
}

void ExecBridge::heed(const NodeMessage& message) {
  const auto* const bytes = std::get_if<StreamBytes>(&message);
  if (bytes == nullptr) return;
  reader_.add(bytes->bytes);
  while (const auto said = reader_.next()) heed(*said);
  if (reader_.is_broken()) return hung_up();
  if (exec_ && !has_ended_ && exec_->waiting() > Exec::kHigh) line_->pause(true);
}

void ExecBridge::heed(const RunMessage& message) {
  if (!exec_ || has_ended_) return;
  if (const auto* const input = std::get_if<AttachInput>(&message)) {
    exec_->write(input->bytes);
  } else if (std::holds_alternative<AttachInputEnd>(message)) {
    exec_->close_input();
  } else if (const auto* const size = std::get_if<AttachSize>(&message)) {
    exec_->resize(size->rows, size->columns);
  }
}

/// A record has no word for a task that is lost; where one is, so is its program.
void ExecBridge::ended(job::ExitStatus status) {
  if (std::exchange(status.lost, false)) status.signal = SIGKILL;
  has_ended_ = true;
  say(RunEnded{{.status = std::move(status), .ended = {}}});
  if (line_) line_->pause(false);  // it may still wait for the program to read
  patience_ = loop_.after(kHangUpPatience, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->hung_up();
  });
}

/// Later: this may be in the midst of being called by either.
void ExecBridge::hung_up() {
  patience_.reset();
  loop_.post([line = std::exchange(line_, nullptr),
              exec = std::shared_ptr<Exec>(std::exchange(exec_, nullptr)),
              over = std::exchange(over_, nullptr)]() mutable {
    line.reset();
    exec.reset();
    if (over) over();
  });
}

}  // namespace muster::engine::slurm
