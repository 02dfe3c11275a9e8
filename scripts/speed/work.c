/* The work of scripts/bench, timed by the process that does it: what it takes to get here is not in the number.
 *
 *     work fork N          N times fork, exec of /bin/true and wait
 *     work stat N FILE…    N times stat(2), over the files in turn
 *     work run N CMD…      N times a command, its output thrown away
 *     work wait            say that it is up, then live until stdin ends
 *
 * Prints nanoseconds by CLOCK_MONOTONIC, or "up". Ends with 1 as soon as anything fails: a number of less work is none.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void run(char **command, int null)
{
	int status;
	pid_t child = fork();

	if (child < 0)
		fail("fork");
	if (child == 0) {
		if (null >= 0)
			dup2(null, 1);
		execvp(command[0], command);
		perror(command[0]);
		_exit(127);
	}
	if (waitpid(child, &status, 0) != child || status != 0) {
		fprintf(stderr, "%s: wait status %d\n", command[0], status);
		exit(1);
	}
}

static void work(const char *kind, long times, char **rest, int count)
{
	char *nothing[] = { "/bin/true", NULL };
	struct stat found;
	int null = strcmp(kind, "run") ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (long each = 0; each < times; each++)
		if (!strcmp(kind, "fork"))
			run(nothing, -1);
		else if (!strcmp(kind, "run"))
			run(rest, null);
		else if (stat(rest[each % count], &found) != 0)
			fail(rest[each % count]);
}

int main(int argc, char **argv)
{
	struct timespec start, end;
	char byte;

	if (argc == 2 && !strcmp(argv[1], "wait")) {
		puts("up");
		fflush(stdout);
		while (read(0, &byte, 1) > 0)
			;
		return 0;
	}
	if (argc < 3 || (strcmp(argv[1], "fork") && argc < 4))
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &start);
	work(argv[1], atol(argv[2]), argv + 3, argc - 3);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%lld\n", (end.tv_sec - start.tv_sec) * 1000000000LL + end.tv_nsec - start.tv_nsec);
	return 0;
}
