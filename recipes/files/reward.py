"""1 for the right answer and 0 for a wrong one, in the form that verl calls."""


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    answer = solution_str.rsplit("#", 1)[-1]
    return 1.0 if answer == ground_truth else 0.0
