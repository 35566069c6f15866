// The channel over the monitors' connections, between hosts. Hand-overs are taken in on the
// monitor's thread of rank 0, and records wait on each rank until somebody carries them out.
#include <deque>
#include <mutex>

#include "control/monitor.h"
#include "session/channel.h"

namespace muster::collective::session {
namespace {

// A message that a monitor would refuse to carry is refused before.
constexpr std::uint64_t kLongestMessage = 256 << 10;

// Shared with the monitor's handler, which may be in the middle of a message when the channel ends.
struct Inbox {
  Bell bell;
  std::mutex mutex;
  bool open = true;
  Channel::Take take;
  std::deque<Bytes> records;
};

class MessageChannel final : public Channel {
 public:
  MessageChannel(int rank, int size, Monitor& monitor, Take take)
      : rank_(rank), size_(size), monitor_(monitor), inbox_(std::make_shared<Inbox>()) {
    inbox_->take = std::move(take);
    if (rank_ == 0) {
      monitor_.handle(Topic::kSession, [inbox = inbox_](int from, const Bytes& payload) {
        const std::lock_guard lock(inbox->mutex);
        if (inbox->open) inbox->bell.notify(inbox->take(from, payload));
      });
      return;
    }
    monitor_.handle(Topic::kSession, [inbox = inbox_](int from, Bytes payload) {
      const std::lock_guard lock(inbox->mutex);
      if (!inbox->open || from != 0) return;
      inbox->records.push_back(std::move(payload));
      inbox->bell.notify(true);
    });
  }

  ~MessageChannel() override {
    monitor_.handle(Topic::kSession, {});
    const std::lock_guard lock(inbox_->mutex);
    inbox_->open = false;
  }

  void hand_over(ByteView message, Tally /*tally*/) override { send(0, message); }
  void notify_self(Tally /*tally*/, bool has_record) override { inbox_->bell.notify(has_record); }
  void joins() override {}
  void all_joined() override {}
  void collect() override {}
  bool has_collected_all() const override { return true; }

  bool publish(ByteView record) override {
    for (int to = 1; to < size_; ++to) send(to, record);
    return true;
  }
  bool has_room_for(ByteView /*record*/) override { return true; }
  void finished(std::uint32_t /*tally*/, int /*hand_overs*/) override {}

  Next next(Bytes& record) override {
    const std::lock_guard lock(inbox_->mutex);
    if (inbox_->records.empty()) return Next::kNothing;
    record = std::move(inbox_->records.front());
    inbox_->records.pop_front();
    return Next::kRecord;
  }
  bool has_next() const override {
    const std::lock_guard lock(inbox_->mutex);
    return !inbox_->records.empty();
  }

  void leave(ByteView message) override {
    if (rank_ == 0) {
      publish(message);
    } else {
      send(0, message);
    }
  }

  std::uint64_t longest() const override { return kLongestMessage; }
  Bell& bell() override { return inbox_->bell; }

 private:
  void send(int to, ByteView bytes) {
    monitor_.send(to, Topic::kSession, Bytes(bytes.begin(), bytes.end()));
  }

  int rank_;
  int size_;
  Monitor& monitor_;
  std::shared_ptr<Inbox> inbox_;
};

}  // namespace

std::unique_ptr<Channel> message_channel(int rank, int size, Monitor& monitor, Channel::Take take) {
  return std::make_unique<MessageChannel>(rank, size, monitor, std::move(take));
}

}  // namespace muster::collective::session
