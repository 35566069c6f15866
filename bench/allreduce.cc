// Measures MPI_Allreduce: prints a line "SIZE MEDIAN" for each requested size (bytes, of floats),
// with the median time of its bursts in microseconds.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr double kMostSeconds = 2;  // for one size, even on a busy machine
constexpr int kMostBursts = 100;
constexpr int kTimes = 10;  // calls in a burst

double microseconds_of(std::vector<float>& sent, std::vector<float>& sums, int times) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < times; ++i) {
    MPI_Allreduce(sent.data(), sums.data(), static_cast<int>(sent.size()), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  }
  double took = (MPI_Wtime() - start) / times * 1e6;
  double slowest = 0;
  MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

double median_of(size_t bytes) {
  std::vector<float> sent(std::max<size_t>(1, bytes / sizeof(float)), 1.0F);
  std::vector<float> sums(sent.size());
  microseconds_of(sent, sums, kTimes);
  std::vector<double> bursts;
  // All ranks have the same figures, so they agree on when to stop.
  for (double took = 0; took < kMostSeconds && bursts.size() < kMostBursts;) {
    bursts.push_back(microseconds_of(sent, sums, kTimes));
    took += bursts.back() * kTimes / 1e6;
  }
  const auto middle = bursts.begin() + static_cast<std::ptrdiff_t>(bursts.size() / 2);
  std::nth_element(bursts.begin(), middle, bursts.end());
  return *middle;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 1; i < argc; ++i) {
    const size_t bytes = std::strtoul(argv[i], nullptr, 10);
    const double median = median_of(bytes);
    if (rank == 0) {
      std::printf("allreduce %zu %.2f\n", bytes, median);
      std::fflush(stdout);
    }
  }
  MPI_Finalize();
  return 0;
}
