// A channel without messages, for tests of the session's thread alone.
#pragma once

#include "session/channel.h"

namespace muster::collective::session {

class SilentChannel : public Channel {
 public:
  Doorbell& bell() override { return bell_; }
  Doorbell* bell_of(int /*rank*/) override { return nullptr; }
  Next next(Bytes& /*record*/) override { return Next::kNothing; }
  bool has_next() override { return false; }
  void hand_over(ByteView /*message*/, Tally /*tally*/) override {}
  void notify_self(Tally /*tally*/, bool has_record) override { bell_.notify(has_record); }
  void joins() override {}
  void collect() override {}
  bool has_collected_all() const override { return true; }
  bool publish(ByteView /*record*/) override { return true; }
  bool has_room_for(ByteView /*record*/) override { return true; }
  void finished(std::uint32_t /*tally*/, int /*hand_overs*/) override {}
  void all_joined() override {}
  void leave(ByteView /*message*/) override {}
  std::uint64_t longest() const override { return 1024; }

 protected:
  mutable Doorbell bell_;
};

}  // namespace muster::collective::session
