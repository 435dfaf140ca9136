"""The common part of the CelebA recipes: the user's files, pictures made from them, resumable work.

References:
    Deep Learning Face Attributes in the Wild (Liu, Luo, Wang, Tang, ICCV 2015), arXiv:1411.7766
"""
