#include "http/stream_ends.h"

#include <utility>

namespace muster::http {

namespace asio = boost::asio;

void QueuedOutput::start(std::weak_ptr<void> owner, ByteStream& stream, Handlers handlers) {
  owner_ = std::move(owner);
  stream_ = &stream;
  handlers_ = std::move(handlers);
}

void QueuedOutput::close() {
  if (std::exchange(closing_, true)) return;
  go_on();
}

void QueuedOutput::go_on() {
  if (stream_ == nullptr || writing_ || closed_) return;
  if (sent_ == on_the_way_.size()) {
    if (waiting_.empty() && !handlers_.refill()) return;
    on_the_way_.clear();
    sent_ = 0;
    on_the_way_.swap(waiting_);
  }
  const auto owner = owner_.lock();
  if (on_the_way_.empty()) {
    if (!closing_) return;
    closed_ = true;
    return stream_->async_close_output([owner](const boost::system::error_code&, size_t) {});
  }
  writing_ = true;
  stream_->async_write_some({asio::buffer(on_the_way_) + sent_},
                            [this, owner](const boost::system::error_code& error, size_t bytes) {
                              writing_ = false;
                              written(error, bytes);
                            });
}

/// If the server has closed its input, that is not an error yet: it may have answered already.
void QueuedOutput::written(const boost::system::error_code& error, size_t bytes) {
  if (closed_) return;
  if (error) {
    closed_ = true;
    waiting_.clear();
    on_the_way_.clear();
    sent_ = 0;
    return;
  }
  sent_ += bytes;
  handlers_.on_sent();
  go_on();
}

void PausableInput::start(std::weak_ptr<void> owner, ByteStream& stream, OnRead on_read) {
  owner_ = std::move(owner);
  stream_ = &stream;
  on_read_ = std::move(on_read);
}

bool PausableInput::set_paused(bool paused) {
  return std::exchange(paused_, paused) != paused;
}

void PausableInput::resume() {
  if (paused_) return;
  if (!held_) return go_on();
  const Read held = *std::exchange(held_, std::nullopt);
  if (!dropped_) on_read_(held.error, {buffer_.data(), held.bytes});
}

void PausableInput::go_on() {
  if (stream_ == nullptr || dropped_ || reading_ || paused_ || held_) return;
  buffer_.resize(kReadSize);
  reading_ = true;
  stream_->async_read_some(
      asio::buffer(buffer_),
      [this, owner = owner_.lock()](const boost::system::error_code& error, size_t bytes) {
        reading_ = false;
        if (dropped_) return;
        if (paused_) {
          held_ = Read{.error = error, .bytes = bytes};
        } else {
          on_read_(error, {buffer_.data(), bytes});
        }
      });
}

}  // namespace muster::http
