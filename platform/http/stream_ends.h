// The output and the input of a ByteStream, as an owner of both uses them.
//
// On the loop's thread only. Each is a member of its owner. Pending operations hold the owner,
// because the stream must outlive them.
#pragma once

#include <boost/system/error_code.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/byte_stream.h"

namespace muster::http {

/// Bytes that wait to be written, and bytes that are being written.
class QueuedOutput {
 public:
  struct Handlers {
    std::function<void()> on_sent;  ///< some bytes were accepted
    /// Nothing waits: appends the next bytes, or returns false if the owner has ended.
    std::function<bool()> refill;
  };

  /// To be called once, before anything is written. The stream must live as long as `owner`.
  void start(std::weak_ptr<void> owner, ByteStream& stream, Handlers handlers);
  void append(std::string_view bytes) { waiting_ += bytes; }
  /// Writes as long as there is anything to write.
  void go_on();
  /// Closes the output after all bytes.
  void close();
  /// Stops. No handler is called any more.
  void drop() { closed_ = true; }

  /// Whether append() has an effect.
  bool accepts() const { return !closed_ && !closing_; }
  /// The number of bytes that have not been sent yet.
  size_t size() const { return waiting_.size() + on_the_way_.size() - sent_; }
  bool empty() const { return waiting_.empty(); }
  /// Whether everything has been sent, and the output is open.
  bool is_idle() const { return accepts() && !writing_ && size() == 0; }

 private:
  void written(const boost::system::error_code& error, size_t bytes);

  std::weak_ptr<void> owner_;
  ByteStream* stream_ = nullptr;
  Handlers handlers_;
  std::string waiting_;
  std::string on_the_way_;  ///< bytes of the current write; `sent_` of them are sent
  size_t sent_ = 0;
  bool writing_ = false;
  bool closing_ = false;  ///< close() was called
  bool closed_ = false;   ///< this side or the other side has closed it
};

/// The bytes that arrive. Reading can be paused.
class PausableInput {
 public:
  using OnRead =
      std::function<void(const boost::system::error_code& error, std::string_view bytes)>;

  /// To be called once, before anything is read. The stream must live as long as `owner`.
  void start(std::weak_ptr<void> owner, ByteStream& stream, OnRead on_read);
  /// Reads, unless a read is pending or the input is paused.
  void go_on();
  /// False: the state has not changed.
  bool set_paused(bool paused);
  bool is_paused() const { return paused_; }
  /// Hands over what arrived during a pause, or reads on.
  void resume();
  /// Whether no read is pending and no bytes are held.
  bool is_idle() const { return !reading_ && !held_; }
  /// Stops. `on_read` is not called any more.
  void drop() { dropped_ = true; }

 private:
  static constexpr size_t kReadSize = 64 << 10;
  struct Read {
    boost::system::error_code error;
    size_t bytes = 0;
  };

  std::weak_ptr<void> owner_;
  ByteStream* stream_ = nullptr;
  OnRead on_read_;
  std::vector<char> buffer_;
  bool reading_ = false;
  bool paused_ = false;
  bool dropped_ = false;
  std::optional<Read> held_;  ///< arrived during the pause
};

}  // namespace muster::http
