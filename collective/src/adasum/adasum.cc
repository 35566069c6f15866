#include "adasum/adasum.h"

#include <bit>
#include <vector>

#include "kernels/kernel.h"

namespace muster::collective {
namespace {

struct Products {
  double ab = 0;
  double aa = 0;
  double bb = 0;
};

template <typename T>
Products products_of(const std::vector<T>& a, const std::vector<T>& b) {
  Products sums;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(a[i]);
    const auto y = static_cast<double>(b[i]);
    sums.ab += x * y;
    sums.aa += x * x;
    sums.bb += y * y;
  }
  return sums;
}

// A zero vector has no direction: the other vector counts in full.
double weight(double ab, double norm) {
  return norm == 0 ? 1 : 1 - ab / (2 * norm);
}

// a = adasum(a, b)
template <typename T>
void combine(std::vector<T>& a, const std::vector<T>& b) {
  const Products sums = products_of(a, b);
  const double of_a = weight(sums.ab, sums.aa);
  const double of_b = weight(sums.ab, sums.bb);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<T>(of_a * static_cast<double>(a[i]) + of_b * static_cast<double>(b[i]));
  }
}

template <typename T>
class Vector {
 public:
  Vector(const AdasumLinks& links, std::uint64_t count)
      : links_(links), own_(count), theirs_(count) {}

  std::vector<T>& values() { return own_; }

  Status reduce() {
    const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(links_.size)));
    if (links_.rank >= power) return follow(links_.rank - power);
    const int follower = links_.rank + power;
    if (follower < links_.size) {
      if (Status got = links_.receive(follower, bytes_of(theirs_)); !got) return got;
      combine(own_, theirs_);
    }
    for (int distance = 1; distance < power; distance *= 2) {
      if (Status met = meet(links_.rank ^ distance); !met) return met;
    }
    if (follower < links_.size) return links_.send(follower, bytes_of(own_));
    return {};
  }

 private:
  static std::span<std::byte> bytes_of(std::vector<T>& values) {
    return std::as_writable_bytes(std::span(values));
  }

  Status follow(int leader) {
    if (Status sent = links_.send(leader, bytes_of(own_)); !sent) return sent;
    return links_.receive(leader, bytes_of(own_));
  }

  Status meet(int peer) {
    if (Status met = links_.swap(peer, bytes_of(own_), bytes_of(theirs_)); !met) return met;
    if (peer < links_.rank) std::swap(own_, theirs_);
    combine(own_, theirs_);
    return {};
  }

  const AdasumLinks& links_;
  std::vector<T> own_;
  std::vector<T> theirs_;
};

template <typename T>
Status reduce_piece(const AdasumLinks& links, DataType type, const Reduction& reduction,
                    const Piece& piece) {
  Vector<T> vector(links, piece.count);
  auto* const wide = reinterpret_cast<std::byte*>(vector.values().data());
  const Kernel widen = Kernel::of({.type = type, .prescale = reduction.prescale, .wide_out = true});
  if (piece.count > 0) widen(&piece.in, 1, wide, piece.count);
  if (Status reduced = vector.reduce(); !reduced) return reduced;
  auto* const reduced = reinterpret_cast<const std::byte*>(vector.values().data());
  const Kernel narrow =
      Kernel::of({.type = type, .postscale = reduction.postscale, .wide_in = true});
  if (piece.count > 0) narrow(&reduced, 1, piece.out, piece.count);
  return {};
}

}  // namespace

AdasumLinks adasum_links(Backend& backend, int rank, int size) {
  AdasumLinks links{.rank = rank, .size = size, .swap = {}, .send = {}, .receive = {}};
  links.send = [&backend](int peer, ByteView mine) {
    return backend.send(mine.data(), mine.size(), peer);
  };
  links.receive = [&backend](int peer, std::span<std::byte> theirs) {
    return backend.receive(theirs.data(), theirs.size(), peer);
  };
  // A send may wait for its receive, so one rank of the pair receives first.
  links.swap = [links, rank](int peer, ByteView mine, std::span<std::byte> theirs) {
    if (rank < peer) {
      Status sent = links.send(peer, mine);
      return sent ? links.receive(peer, theirs) : sent;
    }
    Status received = links.receive(peer, theirs);
    return received ? links.send(peer, mine) : received;
  };
  return links;
}

Status adasum(const AdasumLinks& links, DataType type, const Reduction& reduction, Pieces pieces) {
  for (const Piece& piece : pieces) {
    Status reduced = wide_type_of(type) == DataType::kFloat64
                         ? reduce_piece<double>(links, type, reduction, piece)
                         : reduce_piece<float>(links, type, reduction, piece);
    if (!reduced) return reduced;
  }
  return {};
}

}  // namespace muster::collective
