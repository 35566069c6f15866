# The commands of the project. Each command first installs the packages that it requires (scripts/deps.sh), so only make
# must be installed on Debian 12. CMakePresets.json and scripts/ have the details of each command.
#
# `make help` lists the lines "target: ... ## text".

PREFIX ?= /usr/local
DESTDIR ?=

# Debian's Python, which has Debian's PyTorch.
TORCH_PYTHON ?= /usr/bin/python3

# The start of this make, so that quickstart can print the total time.
export MUSTER_STARTED_AT := $(shell date +%s)
# Where tests and benchmarks find the programs.
export MUSTER_BUILD := $(CURDIR)/build/release

# Ninja's default is two jobs more than there are cores, and compiling a batch of sources takes up to a gigabyte of memory.
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc)

.DEFAULT_GOAL := help
.PHONY: help deps deps-programs deps-dev deps-bench deps-containers deps-horovod deps-kubernetes deps-slurm deps-tensorflow deps-torch deps-fuzz deps-web build programs \
        images image-node image-server kubernetes-manifests quickstart quickstart-programs quickstart-containers quickstart-kubernetes test test-containers test-frameworks test-gpu test-horovod test-horovod-suite test-intel-mpi \
        test-kubernetes test-slurm test-tensorflow test-torch test-web test-docs test-documents test-sanitize test-all fuzz bench bench-build bench-launch bench-throughput bench-scheduler \
        bench-collective bench-api bench-gpu bench-horovod bench-logs bench-containers bench-kubernetes bench-model bench-slurm bench-scale bench-tenants bench-sweeps bench-torch bench-torch-accuracy bench-web web format lint install clean

help: ## list these targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22

deps: ## install the Debian packages that are missing (sudo where needed)
	@scripts/deps.sh

deps-programs:
	@scripts/deps.sh --programs

deps-dev:
	@scripts/deps.sh --dev

deps-bench:
	@scripts/deps.sh --bench

deps-containers:
	@scripts/deps.sh --containers

deps-slurm: ## install Debian's Slurm, whose services stay off
	@scripts/deps.sh --slurm

# The programs and images of a cluster are kept outside the tree, for all checkouts.
deps-kubernetes: ## install and compile a Kubernetes cluster for tests (as root; 12 minutes the first time)
	@scripts/deps.sh --kubernetes
	@scripts/kubernetes_programs.sh >/dev/null
	@scripts/kubernetes_programs.sh containerd >/dev/null
	@scripts/kubernetes_programs.sh helm >/dev/null
	@scripts/kubernetes_images.sh >/dev/null

# TensorFlow from PyPI in build/tensorflow.
deps-tensorflow: deps
	@scripts/python_env.sh tensorflow

deps-torch: ## install the packages for training with libtorch
	@scripts/deps.sh --torch

# Horovod itself in build/horovod: compiled once, which takes some minutes.
deps-horovod: deps-bench
	@scripts/python_env.sh horovod

build: deps ## compile everything, optimised, into build/release
	@cmake --preset release
	@cmake --build --preset release

# Builds only the programs of the quickstart's job: the tests, the Slurm agent and the benchmarks would double the time of
# a first build.
programs: deps-programs
	@cmake --preset release
	@cmake --build --preset release --target muster muster-shim digits

# In a fresh tree, builds muster with the process engine alone and in few batches, which takes half of the time
# (docs/decisions/0035-first-build.md). Every other target builds all engines.
quickstart-programs: deps-programs
	@parts=process; \
	if [ -x build/release/platform/muster ] && grep -qx MUSTER_PARTS:STRING=all build/release/CMakeCache.txt; \
	then parts=all; fi; \
	cmake --preset release -DMUSTER_PARTS=$$parts
	@cmake --build --preset release --target muster muster-shim digits

quickstart: quickstart-programs ## train on two MPI workers under Muster and show the result
	@scripts/quickstart.sh

# The images for the containers of tests, quickstart and benchmarks.
images: deps-containers
	@scripts/test_images.sh

# The image contains only Muster's static programs. Pods with any other image get the programs from it.
image-node: deps-programs ## the image with muster-node, into build/muster-node.tar
	@cmake --preset release
	@cmake --build --preset release --target muster-node muster-shim muster-helper muster-rsh muster-gpu-sampler
	@scripts/image_node.sh

# The image contains muster, the libraries of this machine's Debian, and no shell.
image-server: deps-programs ## the image with muster, for a server in Kubernetes, into build/muster-server.tar
	@cmake --preset release
	@cmake --build --preset release --target muster
	@scripts/image_server.sh

kubernetes-manifests: deps-kubernetes ## write packaging/kubernetes/manifests from the Helm chart
	@scripts/kubernetes_manifests.sh

quickstart-containers: programs images ## the quickstart in containers, by Docker or Podman (as root)
	@scripts/quickstart_containers.sh

quickstart-kubernetes: programs deps-kubernetes image-node ## the quickstart in pods of a cluster of two nodes (as root)
	@scripts/quickstart_kubernetes.sh

test: build ## run every unit, conformance and end-to-end test
	@scripts/run_tests.sh release

# The tests start real engines, Podman and Docker, each with its own storage, networks and processes.
test-containers: build images ## run the tests of tasks in containers (as root)
	@cmake --build --preset release --target container_tests container_conformance_test
	@scripts/run_tests.sh release -L '^containers$$'

test-intel-mpi: build images ## run Intel MPI, from PyPI, in containers and in sandboxes (as root)
	@scripts/run_tests.sh release -L '^intel-mpi$$'

# The tests start clusters of Debian's Slurm.
test-slurm: build deps-slurm ## run the tests of tasks on Slurm (as root)
	@cmake --build --preset release --target slurm_client_test slurm_conformance_test
	@scripts/run_tests.sh release -L '^slurm$$'

# The tests start clusters of two nodes, each with a real kubelet and containerd.
test-kubernetes: build deps-kubernetes image-node image-server ## run the tests of tasks on Kubernetes (as root)
	@cmake --build --preset release --target kubernetes_client_test kubernetes_conformance_test node_cluster_test
	@scripts/run_tests.sh release -L '^kubernetes$$'

# Includes the tests of Muster's own parameter server, because its jobs are TensorFlow clusters, too.
test-tensorflow: build deps-tensorflow ## run TensorFlow and PyTorch as jobs
	@scripts/run_tests.sh release -L '^(tensorflow|parameter-server)$$'

# run_tests.sh selects tests by label; each run ends with the counts of passed and failed tests.
test-horovod: build deps-torch ## run muster.torch, horovodrun, elastic training, the wheels and training in C++
	@cmake --preset torch
	@cmake --build --preset torch
	@scripts/run_tests.sh torch -L '^torch$$'
	@scripts/python_env.sh wheel
	@scripts/python_env.sh chainer
	@scripts/run_tests.sh release -L '^horovod$$'

# SUITES, LAUNCHERS, RANKS (lists with commas), RUNS and TESTS (an expression of pytest -k) select runs.
# HOROVOD=no leaves out Horovod itself, whose results are otherwise shown beside Muster's if `make
# deps-horovod` has built it.
test-horovod-suite: build deps-torch ## run Horovod's own tests, of the checkout HOROVOD_SOURCE, on muster.torch
	@scripts/python_env.sh horovod-suite
	@python3 -B tests/horovod_suite.py --source '$(HOROVOD_SOURCE)' $(if $(SUITES),--suites $(SUITES)) \
	  $(if $(LAUNCHERS),--launchers $(LAUNCHERS)) $(if $(RANKS),--ranks $(RANKS)) $(if $(RUNS),--runs $(RUNS)) \
	  $(if $(TESTS),--tests '$(TESTS)') $(if $(filter no,$(HOROVOD)),--no-horovod)

test-frameworks: build deps-tensorflow ## run muster.torch and muster.tensorflow on a current PyTorch and TensorFlow
	@scripts/python_env.sh torch
	@scripts/run_tests.sh release -L '^frameworks$$'

test-torch: build deps-torch ## run the backend of torch.distributed on Debian's PyTorch and a current one, and PyTorch's own tests
	@scripts/python_env.sh torch
	@scripts/run_tests.sh release -L '^pytorch$$'

# Exits with 77 on a machine without an NVIDIA GPU.
test-gpu: ## run everything that requires an NVIDIA GPU, and print a table
	@python3 -B tests/gpu.py --machine
	@$(MAKE) build
	@cmake --build --preset release --target collective_nccl_check
	@scripts/python_env.sh torch
	@python3 -B tests/gpu.py $(GPU_FLAGS)

test-documents: deps programs ## paste every command of the five documents into a shell
	@python3 tests/documents_test.py

deps-web:
	@scripts/deps.sh --web

# web/dist is kept in the tree, so that a build of the server needs neither Node nor a network.
web: build ## build the web page into web/dist, with the types of the API's document
	@scripts/web.sh build
	@cmake --build --preset release --target muster

test-web: build deps-web ## compare web/dist with its sources, and test the page in Chromium
	@scripts/web.sh test

test-docs: build ## type every command of four pages of docs/ and compare the output
	@scripts/run_tests.sh release -R '^e2e\.docs$$'

# SANITIZERS=asan or tsan selects one; PROGRAMS, names such as "control_test server_test", selects test programs.
test-sanitize: deps deps-fuzz ## run the unit tests under the address, undefined and thread sanitizers
	@scripts/sanitize.sh $(SANITIZERS) $(PROGRAMS)

test-all: ## run every suite, one after another; takes hours
	@scripts/test_all.sh

deps-fuzz:
	@scripts/deps.sh --fuzz

fuzz: deps-fuzz ## run the fuzzer of every parser for FUZZ_SECONDS (20) each
	@cmake --preset fuzz
	@cmake --build --preset fuzz
	@scripts/fuzz.sh

bench: bench-launch bench-throughput bench-scheduler bench-collective bench-api bench-logs ## run the six benchmarks that need neither containers nor a cluster

# BENCH_FLAGS: --rounds N, --account NAME [--no-groups], names of attacks.
bench-tenants: build ## how much a hostile job slows down another tenant's job and the server (as root)
	@python3 bench/tenants.py $(BENCH_FLAGS)

# BENCH_FLAGS: --only quickstart|test|touch.
bench-build: deps-bench build ## time of a first build, of all tests and of a changed file, in a bare Debian (as root)
	@python3 bench/build.py $(BENCH_FLAGS)

bench-launch: deps-bench build ## time from submit to the first line of rank 0, against bare mpirun
	@cmake --build --preset release --target bench_programs
	@python3 bench/launch.py

bench-throughput: build ## jobs per second, and leaked processes
	@python3 bench/throughput.py

# BENCH_FLAGS: --only baseline|large|cycle, --rounds N.
bench-scheduler: build ## Kueue's workloads in real time, and a plan for 10,000 nodes and 100,000 jobs
	@cmake --build --preset release --target bench_scheduler
	@python3 bench/scheduler.py $(BENCH_FLAGS)

# BENCH_FLAGS: --only ranks|simulator|server|tasks|soak|stragglers, --rounds N, --world RANKS HOSTS, --jobs N,
# --store sqlite|postgres, --tasks N, --soak SECONDS, --rate JOBS, --kill-every SECONDS.
bench-scale: build ## 256 and 512 ranks, 200,000 ended jobs, a year of 10,000 GPUs in the simulator
	@cmake --build --preset release --target bench_scale bench_api
	@python3 bench/scale.py $(BENCH_FLAGS)

# BENCH_FLAGS: --seeds N, --trials N.
bench-sweeps: build ## ASHA against random search with the same number of epochs
	@cmake --build --preset release --target digits
	@python3 bench/sweeps.py $(BENCH_FLAGS)

# BENCH_FLAGS: --only submits|listing|memory|watchers|kill, --rounds N.
bench-api: build ## submits, listings, watchers and memory of a busy server, and its recovery after kill -9
	@cmake --build --preset release --target bench_api
	@python3 bench/api.py $(BENCH_FLAGS)

bench-logs: build ## latency and throughput of logs, and the time of list and get
	@python3 bench/logs.py

# BENCH_FLAGS: --only weight|jobs|log|viewer.
bench-web: build deps-web ## size, first paint, memory and frames of the web page with 100,000 jobs
	@cmake --build --preset release --target bench_api
	@scripts/web.sh bench $(BENCH_FLAGS)

# BENCH_FLAGS: names of its parts: launch, gang, allreduce.
bench-containers: deps-bench build images ## tasks in containers, against podman run and mpirun by hand (as root)
	@cmake --build --preset release --target bench_programs
	@python3 bench/containers.py $(BENCH_FLAGS)

# BENCH_FLAGS: --only start|submits|calls, --rounds N.
bench-slurm: deps-bench build deps-slurm ## jobs on Slurm against srun and sbatch by hand, and the load on its controller (as root)
	@cmake --build --preset release --target bench_programs
	@python3 bench/slurm.py $(BENCH_FLAGS)

# BENCH_FLAGS: start, calls, logs, jobs, --rounds N, --no-kube-proxy. SCALE_FLAGS: --nodes, --gangs, --pods N.
bench-kubernetes: build deps-kubernetes image-node ## pods against the MPI operator and an Indexed Job; requests; 1,000 simulated nodes (as root)
	@cmake --build --preset release --target bench_fake_nodes
	@python3 bench/kubernetes.py $(BENCH_FLAGS)
	@python3 bench/kubernetes_scale.py $(SCALE_FLAGS)

# BENCH_FLAGS: --quick, --only SECTION, --rounds N, --plot FILE.
bench-collective: deps-bench build ## all-reduce against Open MPI, MPICH, Gloo, torch; parameter server against gRPC and the ring
	@cmake --build --preset release --target bench_collective
	@python3 bench/collective.py $(BENCH_FLAGS)

# BENCH_FLAGS: --quick, --only bridge|delay, --hosts N.
bench-model: build ## the simulator of all-reduces against namespaces with limited ports (as root), then its tables
	@cmake --build --preset release --target bench_delay_switch
	@python3 bench/collective_model.py $(BENCH_FLAGS)
	@build/release/collective/tools/muster-collective-bench --simulate

# BENCH_FLAGS: --rounds N.
bench-gpu: ## all-reduce of CUDA tensors against Gloo and NCCL, on a machine with an NVIDIA GPU
	@python3 -B tests/gpu.py --machine
	@$(MAKE) build
	@scripts/python_env.sh torch
	@python3 -B bench/gpu.py $(BENCH_FLAGS)

# BENCH_FLAGS: --only latency|bandwidth|gradients|resnet18|resnet20|start|idle, --rounds N.
bench-horovod: build deps-horovod ## muster.torch against Horovod 0.28.1, default and tuned, and DDP over gloo
	@$(TORCH_PYTHON) bench/horovod.py $(BENCH_FLAGS)

# BENCH_FLAGS: --only calls|messages|ddp|fsdp, --rounds N.
bench-torch: build ## the backend muster of torch.distributed against gloo; sharded optimizers (10 minutes)
	@scripts/python_env.sh torch
	@build/torch/bin/python bench/torch_backend.py $(BENCH_FLAGS)
	@build/torch/bin/python bench/torch_sharded.py

# BENCH_FLAGS: --only digits|resnet20, --seeds N, --epochs N, --compression C.
bench-torch-accuracy: build ## accuracy and bytes of training with each compression of gradients (hours)
	@scripts/python_env.sh torch
	@build/torch/bin/python bench/torch_compression.py $(BENCH_FLAGS)

format: deps-dev ## format the C++ files
	@scripts/lint.sh --format

lint: deps-dev build ## check layout, C++, shell scripts, Python and architecture
	@scripts/lint.sh

install: build ## install under PREFIX (/usr/local), below DESTDIR if it is set
	@DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(PREFIX)"

clean: ## remove everything that was built
	@rm -rf build
