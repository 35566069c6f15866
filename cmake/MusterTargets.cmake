# How every target of the project is compiled, and the two shapes a folder takes:
#
#   muster_library(NAME SOURCES a.cc b.cc DEPENDS x y)   one static library a folder
#   muster_test(NAME SOURCES a_test.cc DEPENDS x)        its unit tests, one program a folder or a layer
include_guard()
include(GoogleTest)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# The fixed price of a translation unit, the headers that it reads and the templates that it needs of
# them, is three seconds or more; most of our files cost far less beyond that. So the sources of a
# target are compiled in batches (unity builds). Names that are local to a file are therefore unique
# within its folder: tests/local_names_test.py. The preset `alone` describes every file by itself, and
# `make lint` compiles each so, which proves that it includes what it uses.
#
# Larger batches cost less CPU in all (docs/benchmarks.md, make bench-build), smaller ones keep both
# cores busy, memory below a gigabyte, and the wait after a change short. Sources with options of their
# own (the SIMD kernels) stay alone by CMake's own rule.
#
# Nothing is precompiled: after batching, reading a precompiled header takes as long as it saves.
option(MUSTER_UNITY "compile the sources of a target in batches" ON)
set(CMAKE_UNITY_BUILD ${MUSTER_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 48)

set(MUSTER_SANITIZE "" CACHE STRING "sanitizers of this build: address,undefined or thread")
if(MUSTER_SANITIZE)
  add_compile_options(-fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
  # The check of virtual tables asks the kernel by a pipe whether memory may be read: in a test that
  # takes every descriptor away it sees ghosts.
  add_compile_options(-fno-sanitize=vptr)
endif()

option(MUSTER_FUZZ "build the fuzzers (needs clang)" OFF)
if(MUSTER_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()

# Switched off: designated initialisers may leave members at their defaults; -Wrestrict and
# -Wmaybe-uninitialized are wrong about inlined std::string in gcc 12 (GCC bugs 105651, 105562).
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast
                    -Woverloaded-virtual -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Werror -Wno-restrict -Wno-maybe-uninitialized)
  # A batch of sources fills half a gigabyte in any case; collecting garbage before that is a tenth of
  # the time to compile it.
  add_compile_options(--param=ggc-min-heapsize=524288)
endif()

# MUSTER_OPTIMISE: of a release build, in the place of -O3, for a folder where that only costs time.
function(muster_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  if(MUSTER_OPTIMISE)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:${MUSTER_OPTIMISE}>)
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS})
endfunction()

# Of a program of tests; muster_test() calls it. Its own code is optimised less: it is a third of what
# a build compiles, and runs but once. What it tests is compiled as it is shipped.
function(muster_test_options name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Og>)
endfunction()

# A program COMPUTES whose tests use a whole core or more, ranks that spin above all: each of its tests then
# takes two of the slots of scripts/run_tests.sh.
function(muster_test name)
  cmake_parse_arguments(ARG "COMPUTES" "" "SOURCES;DEPENDS" ${ARGN})
  set(slots 1)
  if(ARG_COMPUTES)
    set(slots 2)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gtest GTest::gtest_main)
  muster_test_options(${name})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 120 PROCESSORS ${slots})
endfunction()
