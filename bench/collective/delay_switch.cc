// A switch in user space that delays what it forwards. It stands in for tc netem, which many kernels
// do not have.
//
//   delay_switch --mbit R --burst B --delay-us D NAMESPACE...
//
// Creates the interface "cable" in each network namespace (a TAP device with the hardware address
// 02:00:00:00:00:NN, NN counting from 1) and forwards frames between these interfaces by their last
// byte. A frame leaves through its port at R Mbit/s, after the frames before it, and arrives D
// microseconds later. A port that has been idle may send --burst bytes at once. Nothing is dropped.
//
// Prints "ready" when the interfaces exist, and ends with its standard input. Requires root.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <net/if_arp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

struct Frame {
  Clock::time_point due;
  std::vector<char> bytes;
};

struct Port {
  int fd;
  Clock::time_point free_at = {};
  std::deque<Frame> frames = {};
};

[[noreturn]] void give_up(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

int make_interface(const std::string& place, int number) {
  const int home = ::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  const int there = ::open(("/run/netns/" + place).c_str(), O_RDONLY | O_CLOEXEC);
  if (there < 0 || ::setns(there, CLONE_NEWNET) != 0) give_up("namespace " + place);
  const int tap = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request = {};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  std::strcpy(request.ifr_name, "cable");
  if (tap < 0 || ::ioctl(tap, TUNSETIFF, &request) != 0) give_up("/dev/net/tun");
  request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  request.ifr_hwaddr.sa_data[0] = 2;
  request.ifr_hwaddr.sa_data[5] = static_cast<char>(number);
  if (::ioctl(tap, SIOCSIFHWADDR, &request) != 0) give_up("the hardware address");
  if (::setns(home, CLONE_NEWNET) != 0) give_up("the own namespace");
  ::close(there);
  ::close(home);
  return tap;
}

class Switch {
 public:
  Switch(double mbit, double burst, nanoseconds delay, const std::vector<std::string>& places)
      : nanoseconds_per_byte_(8'000 / mbit),
        credit_(static_cast<std::int64_t>(burst * nanoseconds_per_byte_)),
        delay_(delay) {
    for (const std::string& place : places) {
      ports_.push_back({make_interface(place, static_cast<int>(ports_.size()) + 1)});
    }
  }

  void run() {
    std::puts("ready");
    std::fflush(stdout);
    while (wait()) {
      for (const Port& port : ports_) read_from(port);
      for (Port& port : ports_) deliver(port);
    }
  }

 private:
  // Until a frame comes or is due. Returns false at the end of standard input.
  bool wait() {
    std::vector<pollfd> entries = {{STDIN_FILENO, POLLIN, 0}};
    auto next = Clock::now() + std::chrono::seconds(1);
    for (const Port& port : ports_) {
      entries.push_back({port.fd, POLLIN, 0});
      if (!port.frames.empty()) next = std::min(next, port.frames.front().due);
    }
    const auto left = std::max(nanoseconds(0), nanoseconds(next - Clock::now()));
    const timespec timeout = {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    return ::ppoll(entries.data(), entries.size(), &timeout, nullptr) < 0 ||
           entries[0].revents == 0;
  }

  void read_from(const Port& from) {
    for (;;) {
      const ssize_t length = ::read(from.fd, buffer_.data(), buffer_.size());
      if (length < 6) return;
      const auto number = static_cast<std::size_t>(buffer_[5]);
      if (buffer_[0] != 2 || number == 0 || number > ports_.size()) continue;
      Port& to = ports_[number - 1];
      const auto serving = nanoseconds(
          static_cast<std::int64_t>(static_cast<double>(length) * nanoseconds_per_byte_));
      const auto now = Clock::now();
      to.free_at = std::max(to.free_at, now - credit_) + serving;
      const auto leaves = std::max(to.free_at, now);
      to.frames.push_back({leaves + delay_, {buffer_.data(), buffer_.data() + length}});
    }
  }

  static void deliver(Port& port) {
    const auto now = Clock::now();
    while (!port.frames.empty() && port.frames.front().due <= now) {
      const std::vector<char>& bytes = port.frames.front().bytes;
      if (::write(port.fd, bytes.data(), bytes.size()) < 0 && errno == EAGAIN) return;
      port.frames.pop_front();
    }
  }

  double nanoseconds_per_byte_;
  nanoseconds credit_;
  nanoseconds delay_;
  std::vector<Port> ports_ = {};
  std::vector<char> buffer_ = std::vector<char>(65'536);
};

}  // namespace

int main(int argc, char** argv) {
  double mbit = 1'000;
  double burst = 0;
  double delay_us = 0;
  std::vector<std::string> places;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--mbit" && i + 1 < argc) {
      mbit = std::atof(argv[++i]);
    } else if (word == "--burst" && i + 1 < argc) {
      burst = std::atof(argv[++i]);
    } else if (word == "--delay-us" && i + 1 < argc) {
      delay_us = std::atof(argv[++i]);
    } else {
      places.emplace_back(word);
    }
  }
  Switch(mbit, burst, nanoseconds(static_cast<std::int64_t>(delay_us * 1'000)), places).run();
}
