#include "engine/folder/run_conversation.h"

#include <algorithm>
#include <utility>

#include "engine/engine_errors.h"

namespace muster::engine {

namespace {

/// The exit code of a program that could not be run, as in a shell.
constexpr int kNotRun = 127;
constexpr size_t kKeptFarEndWords = 400;
/// How long the end of a task is awaited after its connection broke, since the task may continue.
constexpr std::chrono::seconds kPatience{3};

class NearEnd : public Exec {
 public:
  explicit NearEnd(std::shared_ptr<RunConversation> conversation)
      : conversation_(std::move(conversation)) {}
  ~NearEnd() override { conversation_->drop(); }
  void when_begun(Begun on_begun) override { conversation_->when_begun(std::move(on_begun)); }
  void write(std::string_view bytes) override { conversation_->write(bytes); }
  size_t waiting() const override { return conversation_->waiting(); }
  void close_input() override { conversation_->send(AttachInputEnd{}); }
  void resize(int rows, int columns) override {
    conversation_->send(AttachSize{.rows = rows, .columns = columns});
  }
  void pause(bool paused) override { conversation_->pause(paused); }

 private:
  std::shared_ptr<RunConversation> conversation_;
};

}  // namespace

std::unique_ptr<Exec> near_end_of(std::shared_ptr<RunConversation> conversation) {
  return std::make_unique<NearEnd>(std::move(conversation));
}

void RunConversation::connected(std::unique_ptr<RunLink> link) {
  if (ended_) return;  // the link is dropped, which hangs up
  link_ = std::move(link);
  if (!waiting_.empty()) link_->write(std::exchange(waiting_, ""));
  drained();
}

void RunConversation::send(const RunMessage& message) {
  if (ended_) return;
  const std::string packet = encode_run(message);
  link_ ? link_->write(packet) : void(waiting_ += packet);
}

void RunConversation::write(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size(); at += kAttachPiece) {
    send(AttachInput{std::string(bytes.substr(at, kAttachPiece))});
  }
  is_full_ = is_full_ || waiting() > Exec::kHigh;
}

void RunConversation::pause(bool paused) {
  if (std::exchange(paused_, paused) == paused || ended_) return;
  // The first message reports the start of the program, so it is read even while paused.
  if (link_ && has_begun_) link_->pause(paused);
  if (paused) return;
  loop_.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->read();
  });
}

void RunConversation::when_begun(Exec::Begun on_begun) {
  if (has_begun_ || ended_) return on_begun({});
  on_begun_ = std::move(on_begun);
}

void RunConversation::drop() {
  ended_ = true;
  handlers_ = {};
  on_begun_ = nullptr;
  close();
}

void RunConversation::take(std::string_view bytes) {
  if (ended_) return;
  reader_.add(bytes);
  read();
}

void RunConversation::add_words(std::string_view words) {
  words_ += words.substr(0, kKeptFarEndWords - std::min(kKeptFarEndWords, words_.size()));
}

void RunConversation::read() {
  while (may_read()) {
    const auto message = reader_.next();
    if (!message) break;
    if (!std::holds_alternative<RunRefused>(*message)) begun();
    std::visit([this](const auto& each) { handle(each); }, *message);
  }
  if (!ended_ && reader_.is_broken()) return finish(if_cut_);
  if (may_read() && hung_up_) cut_off();
}

void RunConversation::begun() {
  if (std::exchange(has_begun_, true)) return;
  if (paused_ && link_) link_->pause(true);
  report_begun({});
}

/// The callback may destroy this object.
void RunConversation::report_begun(base::Result<void> how) {
  if (const auto on_begun = std::exchange(on_begun_, nullptr)) on_begun(std::move(how));
}

void RunConversation::handle(const AttachOutput& output) {
  const auto on_output = handlers_.on_output;
  if (on_output) on_output(output.bytes, output.is_error);
}

void RunConversation::handle(const AttachLeftOut& gap) {
  const auto on_output = handlers_.on_output;
  if (on_output) on_output(left_out_text(gap.bytes), true);
}

void RunConversation::handle(const RunOutputEnd& end) {
  const auto on_end = handlers_.on_output_end;
  if (on_end) on_end(end.is_error);
}

void RunConversation::refused(const base::Error& error) {
  if (ended_) return;
  if (!on_begun_) return finish({.code = kNotRun, .error = error.what});
  const auto on_begun = std::exchange(on_begun_, nullptr);
  drop();
  on_begun(error);
}

void RunConversation::handle(const RunEnded& end) {
  finish(end.record.status);
}

void RunConversation::hung_up() {
  hung_up_ = true;
  if (may_read()) read();
}

/// Mostly the task has ended: its container or folder is removed when the end is known.
void RunConversation::cut_off() {
  if (!words_.empty() && if_cut_.error.empty()) if_cut_.error = words_;
  const std::weak_ptr<RunConversation> weak = weak_from_this();
  if (task_) {
    patience_ = loop_.after(kPatience, [weak] {
      if (const auto self = weak.lock()) self->report_end(self->if_cut_);
    });
  }
  finish(if_cut_);
}

void RunConversation::cut(const base::Error& error) {
  if (ended_) return;
  job::ExitStatus status = if_cut_;
  status.error = error.what;
  finish(status);
}

void RunConversation::finish(const job::ExitStatus& status) {
  if (!task_) return report_end(status);
  close();
  reader_ = {};
  task_->wait([weak = weak_from_this(), status] {
    const auto self = weak.lock();
    if (self) self->report_end(self->task_->status().value_or(status));
  });
}

void RunConversation::report_end(const job::ExitStatus& status) {
  report_begun({});
  const auto on_exit = std::exchange(handlers_.on_exit, nullptr);
  drop();
  if (on_exit) on_exit(status);
}

void RunConversation::drained() {
  if (ended_ || !is_full_ || waiting() > Exec::kHigh) return;
  is_full_ = false;
  const auto on_drain = handlers_.on_drain;
  if (on_drain) on_drain();
}

/// The link is destroyed later, because it may be calling this object now.
void RunConversation::close() {
  if (!link_) return;
  loop_.post([link = std::shared_ptr<RunLink>(std::move(link_))] {});
}

}  // namespace muster::engine
