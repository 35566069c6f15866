// The limits of the machine, in the same loop as the libraries.
//
//   --limit=import   the two ranks synchronize, and each reads the bytes of the call from the cache
//                    of the other rank, which has just written them. Every all-reduce of data that
//                    fits into the caches has to do at least this.
//   --limit=copy     each rank copies the bytes of the call with stores that bypass the caches: 4
//                    times the bytes of a call move to and from memory, as in an all-reduce in
//                    place that reads and writes each gradient once.
//   --limit=socket   each rank sends the bytes of the call to the other rank and receives as many,
//                    over plain sockets: --streams=N of them, with --congestion=NAME, --address=A
//                    of this rank and --peer=A of the other. A ring of two ranks moves the same
//                    bytes.
//   --limit=sum      the same, and each rank adds the received values of its half of the buffer
//                    before it sends the sums, which every all-reduce of two ranks has to do. In
//                    place, float32.
//
// Two ranks.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "core.h"

namespace {

using bench::Subject;

// The sum keeps the reads. Eight are added at a time, since otherwise the additions would dominate
// the time.
[[gnu::target_clones("avx512f", "avx2", "default")]] void read_all(const std::uint64_t* words,
                                                                   std::uint64_t count) {
  std::uint64_t sums[32] = {};
  std::uint64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    for (int lane = 0; lane < 32; lane++) sums[lane] ^= words[i + static_cast<std::uint64_t>(lane)];
  }
  for (; i < count; i++) sums[0] ^= words[i];
  for (int lane = 1; lane < 32; lane++) sums[0] ^= sums[lane];
  asm volatile("" : : "r"(sums[0]));
}

void copy_past_caches(const void* from, void* to, std::uint64_t bytes) {
#if defined(__x86_64__)
  const auto* source = static_cast<const __m128i*>(from);
  auto* target = static_cast<__m128i*>(to);
  for (std::uint64_t i = 0; i < bytes / 64; i++, source += 4, target += 4) {
    const __m128i a = _mm_load_si128(source);
    const __m128i b = _mm_load_si128(source + 1);
    const __m128i c = _mm_load_si128(source + 2);
    const __m128i d = _mm_load_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  _mm_sfence();
#else
  std::memcpy(to, from, bytes);
#endif
}

// A buffer that the other rank maps, too: a file beside the page, removed with it.
class Shared {
 public:
  explicit Shared(const bench::Plan& plan) : plan_(plan) {}

  void* allocate(std::uint64_t bytes) {
    bytes_ = bytes;
    return map(plan_.rank);
  }

  void* peer() const { return map(1 - plan_.rank); }

  void release(void* memory) const { munmap(memory, bytes_); }

 private:
  void* map(int rank) const {
    const std::string path = plan_.page + "." + std::to_string(rank);
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const auto length = static_cast<off_t>(bytes_);
    if (file < 0 || ftruncate(file, length) != 0) bench::fail("no buffer " + path);
    void* memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    close(file);
    return memory == MAP_FAILED ? nullptr : memory;
  }

  const bench::Plan& plan_;
  std::uint64_t bytes_ = 0;
};

Subject import_from(Shared& shared, bench::Page& page) {
  Subject subject;
  subject.allocate = [&](std::uint64_t bytes) { return shared.allocate(bytes); };
  subject.release = [&](void* memory) { shared.release(memory); };
  subject.prepare = [&](const void*, void*, std::uint64_t bytes) {
    page.meet();  // both ranks have created their buffers
    auto peer = std::shared_ptr<void>(shared.peer(), [bytes](void* at) { munmap(at, bytes); });
    return [&page, peer, bytes] {
      page.meet();
      read_all(static_cast<const std::uint64_t*>(peer.get()), bytes / sizeof(std::uint64_t));
    };
  };
  subject.is_sum = false;
  return subject;
}

Subject copy() {
  Subject subject;
  subject.prepare = [](const void* in, void* out, std::uint64_t bytes) {
    return [=] { copy_past_caches(in, out, bytes); };
  };
  subject.is_sum = false;
  return subject;
}

sockaddr_in endpoint(const std::string& address, int port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &name.sin_addr) != 1) bench::fail("address " + address);
  return name;
}

// Connections between the two ranks. Each carries its share of the bytes in both directions.
class Streams {
 public:
  Streams(const bench::Arguments& arguments, bench::Page& page)
      : congestion_(arguments.text("congestion", "")) {
    const auto count = arguments.number("streams", 1);
    if (page.rank() == 0) {
      listen_and_accept(arguments.text("address", "127.0.0.1"), count, page);
    } else {
      const auto port = static_cast<int>(page.from_first(0));
      const sockaddr_in name = endpoint(arguments.text("peer", "127.0.0.1"), port);
      for (std::uint64_t i = 0; i < count; i++) sockets_.push_back(connect_to(name));
    }
    for (const int socket : sockets_) {
      if (fcntl(socket, F_SETFL, O_NONBLOCK) != 0) bench::fail("O_NONBLOCK");
    }
  }

  /// In place: the sum of the floats of both ranks. The first half is summed by rank 0.
  void sum(float* data, std::uint64_t bytes, int rank) {
    const std::uint64_t length = bytes / sizeof(float) / 2 / sockets_.size();
    if (length * sizeof(float) * 2 * sockets_.size() != bytes)
      bench::fail("the bytes do not divide");
    std::vector<Sum> parts(sockets_.size());
    for (std::uint64_t i = 0; i < parts.size(); i++) {
      float* const first = data + i * length;
      float* const second = first + length * sockets_.size();
      parts[i].socket = sockets_[i];
      parts[i].own = rank == 0 ? first : second;
      parts[i].other = reinterpret_cast<char*>(rank == 0 ? second : first);
      parts[i].half = length * sizeof(float);
    }
    for (bool all_done = false; !all_done;) {
      all_done = true;
      for (Sum& part : parts) {
        send_some(part);
        receive_some(part);
        all_done = all_done && part.sent == 2 * part.half && part.received == 2 * part.half;
      }
    }
  }

  void exchange(const char* from, char* to, std::uint64_t bytes) {
    const std::uint64_t share = (bytes + sockets_.size() - 1) / sockets_.size();
    std::vector<Progress> parts;
    for (std::uint64_t i = 0; i < sockets_.size(); i++) {
      const std::uint64_t start = std::min(bytes, i * share);
      parts.push_back({sockets_[i], start, start, std::min(bytes, start + share)});
    }
    // Polls without a pause: two ranks on two cores have no other work.
    for (bool all_done = false; !all_done;) {
      all_done = true;
      for (Progress& part : parts) {
        move(part, from, to);
        all_done = all_done && part.sent == part.end && part.received == part.end;
      }
    }
  }

 private:
  struct Progress {
    int socket;
    std::uint64_t sent;
    std::uint64_t received;
    std::uint64_t end;
  };

  static constexpr std::uint64_t kPiece = 1 << 20;
  static constexpr std::uint64_t kAtOnce = 128 << 10;  // fits into the second cache

  // First the other rank's half is sent and the own half is received, then the sums of both.
  struct Sum {
    int socket = -1;
    float* own = nullptr;
    char* other = nullptr;
    std::uint64_t half = 0;  // bytes
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::uint64_t begun = 0;  // bytes of a float that has not arrived as a whole, in `arrived`
    std::vector<float> arrived = std::vector<float>(kAtOnce / sizeof(float));
  };

  static void send_some(Sum& part) {
    const bool is_sum = part.sent >= part.half;
    const char* const from = is_sum
                                 ? reinterpret_cast<const char*>(part.own) + part.sent - part.half
                                 : part.other + part.sent;
    const std::uint64_t summed =
        part.received >= part.half ? part.half : part.received - part.begun;
    const std::uint64_t ready = is_sum ? part.half + summed : part.half;
    if (part.sent >= ready) return;
    part.sent += done(send(part.socket, from, std::min(kPiece, ready - part.sent), MSG_NOSIGNAL));
  }

  static void receive_some(Sum& part) {
    if (part.received == 2 * part.half) return;
    if (part.received >= part.half) {
      const std::uint64_t at = part.received - part.half;
      part.received +=
          done(recv(part.socket, part.other + at, std::min(kPiece, part.half - at), 0));
      return;
    }
    char* const arrived = reinterpret_cast<char*>(part.arrived.data());
    const std::uint64_t summed = part.received - part.begun;
    const std::uint64_t count =
        done(recv(part.socket, arrived + part.begun,
                  std::min(kAtOnce - part.begun, part.half - part.received), 0));
    const std::uint64_t whole = (part.begun + count) / sizeof(float);
    float* const sums = part.own + summed / sizeof(float);
    for (std::uint64_t i = 0; i < whole; i++) sums[i] += part.arrived[i];
    part.received += count;
    part.begun = part.begun + count - whole * sizeof(float);
    std::memmove(arrived, part.arrived.data() + whole, part.begun);
  }

  static void move(Progress& part, const char* from, char* to) {
    if (part.sent < part.end) {
      part.sent += done(send(part.socket, from + part.sent, std::min(kPiece, part.end - part.sent),
                             MSG_NOSIGNAL));
    }
    if (part.received < part.end) {
      part.received += done(
          recv(part.socket, to + part.received, std::min(kPiece, part.end - part.received), 0));
    }
  }

  static std::uint64_t done(ssize_t moved) {
    if (moved > 0) return static_cast<std::uint64_t>(moved);
    if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
    bench::fail("the other rank has ended");
  }

  int open_socket() const {
    const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    if (made < 0 || setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
      bench::fail("socket");
    }
    if (!congestion_.empty() && setsockopt(made, IPPROTO_TCP, TCP_CONGESTION, congestion_.data(),
                                           static_cast<socklen_t>(congestion_.size())) != 0) {
      bench::fail("no congestion control " + congestion_);
    }
    return made;
  }

  void listen_and_accept(const std::string& address, std::uint64_t count, bench::Page& page) {
    // Accepted connections inherit the options.
    const int listener = open_socket();
    sockaddr_in name = endpoint(address, 0);
    socklen_t length = sizeof name;
    auto* const any = reinterpret_cast<sockaddr*>(&name);
    if (bind(listener, any, length) != 0 || listen(listener, 16) != 0 ||
        getsockname(listener, any, &length) != 0) {
      bench::fail("cannot listen on " + address);
    }
    page.from_first(ntohs(name.sin_port));
    for (std::uint64_t i = 0; i < count; i++)
      sockets_.push_back(accept(listener, nullptr, nullptr));
    close(listener);
  }

  int connect_to(const sockaddr_in& name) const {
    const int made = open_socket();
    if (connect(made, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
      bench::fail("cannot connect to the other rank");
    }
    return made;
  }

  std::string congestion_;
  std::vector<int> sockets_;
};

Subject socket_exchange(const bench::Arguments& arguments, bench::Page& page) {
  auto streams = std::make_shared<Streams>(arguments, page);
  Subject subject;
  subject.prepare = [=](const void* in, void* out, std::uint64_t bytes) {
    return [=] { streams->exchange(static_cast<const char*>(in), static_cast<char*>(out), bytes); };
  };
  subject.is_sum = false;
  return subject;
}

Subject socket_sum(const bench::Arguments& arguments, bench::Page& page) {
  auto streams = std::make_shared<Streams>(arguments, page);
  Subject subject;
  subject.prepare = [=, rank = page.rank()](const void* in, void* out, std::uint64_t bytes) {
    if (in != out) bench::fail("the sum is in place");
    return [=] { streams->sum(static_cast<float*>(out), bytes, rank); };
  };
  return subject;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv);
  const bench::Plan plan = bench::plan_from(arguments);
  if (plan.ranks != 2) bench::fail("the limits are between two ranks");
  bench::Page page(plan.page, plan.rank, plan.ranks, plan.cores);
  const std::string limit = arguments.text("limit", "");
  Shared shared(plan);
  if (limit == "import") {
    bench::measure(plan, page, import_from(shared, page));
  } else if (limit == "copy") {
    bench::measure(plan, page, copy());
  } else if (limit == "socket") {
    bench::measure(plan, page, socket_exchange(arguments, page));
  } else if (limit == "sum") {
    bench::measure(plan, page, socket_sum(arguments, page));
  } else {
    bench::fail("unknown limit: " + limit);
  }
  return 0;
}
